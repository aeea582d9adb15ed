// A stage as a Lambda function: settings from the environment, one open store per container, an end in time, and errors
// under the names that state machines match on.
import middy from "@middy/core";
import type { Context } from "aws-lambda";
import type { z } from "zod";
import { Failure } from "../src/failure/errors.ts";
import { type Environment, environment, Text, type Variables } from "../src/settings/environment.ts";
import { callStage, type Stage, type StageServices } from "../src/stages/stage.ts";
import type { ObjectStore } from "../src/store/object-store.ts";
import { openStore } from "../src/store/open-store.ts";
import { emitMetrics, logError, logWarning } from "./log.ts";

type Run = (input: never, settings: never, services: never) => Promise<unknown>;
type Settings<V extends Variables> = ReturnType<Environment<V>["fromEnvironment"]>;
/** Services that one stage gets beside the services of every stage. */
type More<R extends Run> = Omit<Parameters<R>[2], keyof StageServices>;
type Opening<V extends Variables, R extends Run> = (settings: Settings<V>) => More<R>;

/** @param opening makes the services that only this stage has */
export function stageHandler<Output extends z.ZodType, V extends Variables, R extends Run>(
  stage: Stage<z.ZodType, Output, V, R>,
  ...[opening]: Record<never, never> extends More<R> ? [opening?: Opening<V, R>] : [opening: Opening<V, R>]
) {
  const atWork = new WeakMap<Context, Promise<z.output<Output>>>();
  return middy<unknown, z.output<Output>>({ timeoutEarlyInMillis: EARLY_MS, timeoutEarlyResponse: timedOut })
    .onError(async ({ error, event, context }) => {
      report(error, event, context);
      // After the answer Lambda freezes the container: a later call finds everything that is not cleaned up by then
      // (middyjs/middy#1240).
      await endOf(atWork.get(context));
    })
    .handler((event: unknown, context: Context, { signal }: { readonly signal: AbortSignal }) => {
      const begin = async (): Promise<z.output<Output>> => {
        const settings = stage.settings.fromEnvironment(process.env);
        const services: StageServices = {
          store: await openedStore(),
          signal,
          onMetrics: emitMetrics,
          onWarning: logWarning,
        };
        return callStage(stage, event, settings as never, { ...services, ...opening?.(settings) } as never);
      };
      const working = begin();
      atWork.set(context, working);
      return working;
    });
}

/** Wait at most this long for work that ignores its abort signal, so we answer before Lambda times out. */
const CLEANUP_MS = 5_000;

async function endOf(working: Promise<unknown> | undefined): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, CLEANUP_MS);
  await Promise.race([working?.catch(() => undefined), late.promise]);
  clearTimeout(timer);
}

/** Time for the answer to travel. If Lambda ended the function itself, its error would say nothing about the stage. */
const EARLY_MS = 10_000;

function timedOut(): never {
  throw new Failure(
    "StageTimedOut",
    "the stage was not done in time; run again it goes on from what is there",
    { retryable: true },
  );
}

const STORE = environment("a function", { storeUrl: ["T1_STORE_URL", Text] });
let store: Promise<ObjectStore> | undefined;

function openedStore(): Promise<ObjectStore> {
  store ??= openStore(STORE.fromEnvironment(process.env).storeUrl).catch(error => {
    store = undefined; // the next call tries again
    throw error;
  });
  return store;
}

/** Logs the stack and the event, which the state machine's history does not hold. */
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
