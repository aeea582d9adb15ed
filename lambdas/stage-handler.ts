// What every function here has in common: input and environment checked by a schema, one open store per container, an
// end in time, and errors under the names that state machines match on.
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import { z } from "zod";
import { Failure, InputError } from "../src/failure/errors.ts";
import type { ObjectStore } from "../src/store/object-store.ts";
import { openStore } from "../src/store/open-store.ts";
import { logError } from "./log.ts";

export interface StageContext {
  readonly store: ObjectStore;
  /** Fires when the function answers that it was not done in time: what was begun is to be cleaned up, at once. */
  readonly signal: AbortSignal;
}

/**
 * @param input of the event; unknown keys are refused, so that a machine and its function cannot drift apart unseen
 * @param work one call into src/
 */
export function stageHandler<Input extends z.ZodType, Output>(
  input: Input,
  work: (input: z.output<Input>, context: StageContext) => Promise<Output>,
) {
  const atWork = new WeakMap<Context, Promise<Output>>();
  return middy<unknown, Output>({ timeoutEarlyInMillis: EARLY_MS, timeoutEarlyResponse: timedOut })
    .onError(async ({ error, event, context }) => {
      report(error, event, context);
      // After the answer the container is frozen: what is not cleaned up by then is found by a later call
      // (middyjs/middy#1240).
      await endOf(atWork.get(context));
    })
    .handler((event: unknown, context: Context, { signal }: { readonly signal: AbortSignal }) => {
      const begin = async (): Promise<Output> =>
        work(parse(input, event, "the event"), { store: await openedStore(), signal });
      const working = begin();
      atWork.set(context, working);
      return working;
    });
}

/** What does not heed its signal is not waited for longer than this, so that the answer comes before Lambda's end. */
const CLEANUP_MS = 5_000;

async function endOf(working: Promise<unknown> | undefined): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, CLEANUP_MS);
  await Promise.race([working?.catch(() => undefined), late.promise]);
  clearTimeout(timer);
}

/** Left for the answer to travel: the function is not ended by Lambda, whose error would say nothing of the stage. */
const EARLY_MS = 10_000;

function timedOut(): never {
  throw new Failure(
    "StageTimedOut",
    "the stage was not done in time; run again it goes on from what is there",
    {
      retryable: true,
    },
  );
}

/** @throws InputError naming each variable that is missing or wrong */
export function readEnvironment<Shape extends z.ZodRawShape>(shape: Shape): z.output<z.ZodObject<Shape>> {
  return parse(z.object(shape), process.env, "the environment");
}

/** Elsewhere than on Fargate there are no quotas to ask for, no images to build and no service to wake. */
export function sandboxKind(): "fargate" | "bubblewrap" | "docker" {
  return readEnvironment({ T1_SANDBOXES: z.enum(["fargate", "bubblewrap", "docker"]) }).T1_SANDBOXES;
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown, where: string): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "(top)"}: ${message}`);
  throw new InputError({ what: "invalid input of a stage", where, expected: problems.join("; ") });
}

let store: Promise<ObjectStore> | undefined;

function openedStore(): Promise<ObjectStore> {
  store ??= openStore(readEnvironment({ T1_STORE_URL: z.string().min(1) }).T1_STORE_URL).catch(error => {
    store = undefined; // the next call tries again
    throw error;
  });
  return store;
}

/** The log holds what the machine's history does not: the stack, and what was asked for. */
function report(error: Error | null | undefined, event: unknown, context: Context): void {
  logError({
    message: error?.message,
    name: error?.name,
    stack: error?.stack,
    cause: error?.cause instanceof Error ? error.cause.message : error?.cause,
    event,
    requestId: context.awsRequestId,
  });
}
