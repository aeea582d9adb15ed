// `lambda:invoke`: a handler called in this process. What it gets and gives passes through JSON, as it does there.
import { z } from "zod";
import type { TaskExecutor } from "../executor.ts";
import { exceedsBytes, type Json } from "../json-value.ts";
import { StateError } from "../state-error.ts";

/** Quota of a synchronous invocation. */
const PAYLOAD_BYTES = 6 * 1024 * 1024;

interface LambdaContext {
  readonly awsRequestId: string;
  readonly functionName: string;
  getRemainingTimeInMillis(): number;
  /** Fires when the time is over. The service gives no such thing: a handler need not use it. */
  readonly signal: AbortSignal;
  /** Waits on the runner's clock. */
  readonly sleep: (ms: number) => Promise<void>;
}

export interface LambdaFunction {
  readonly handler: (event: Json, context: LambdaContext) => Promise<unknown>;
  /** 3 s where none is given, as Lambda has it. */
  readonly timeoutSeconds?: number;
}

const Arguments = z.looseObject({
  FunctionName: z.string(),
  Payload: z.custom<Json>().optional(),
  InvocationType: z.enum(["RequestResponse", "Event"]).optional(),
});

/** @param functions by name */
export function lambdaExecutor(functions: Readonly<Record<string, LambdaFunction>>): TaskExecutor {
  return async (request, context) => {
    const parsed = Arguments.safeParse(request.arguments);
    if (!parsed.success) throw new StateError("States.Runtime", z.prettifyError(parsed.error));
    const { FunctionName: named, Payload: payload = {}, InvocationType: type } = parsed.data;
    const name = /(?:^|:function:)([^:]+)(?::[^:]*)?$/.exec(named)?.[1] ?? named;
    const found = Object.hasOwn(functions, name) ? functions[name] : undefined;
    if (found === undefined)
      throw new StateError(
        "Lambda.ResourceNotFoundException",
        `Function not found: ${named} (Service: Lambda, Status Code: 404, Request ID: ${request.requestId})`,
      );
    const text = JSON.stringify(payload);
    if (exceedsBytes(text, PAYLOAD_BYTES))
      throw new StateError("Lambda.AWSLambdaException", "Request must be smaller than 6291456 bytes");
    const run = invoke(name, found, JSON.parse(text), request.requestId, context);
    if (type === "Event") {
      context.detach(run);
      return { Payload: "", StatusCode: 202, ...metadata(request.requestId, 202) };
    }
    return {
      ExecutedVersion: "$LATEST",
      Payload: await run,
      StatusCode: 200,
      ...metadata(request.requestId, 200),
    };
  };
}

async function invoke(
  name: string,
  { handler, timeoutSeconds = 3 }: LambdaFunction,
  event: Json,
  requestId: string,
  { signal, sleep, now }: Parameters<TaskExecutor>[1],
): Promise<Json> {
  const deadlineMs = now() + 1000 * timeoutSeconds;
  const abort = new AbortController();
  const stop = () => abort.abort();
  signal.addEventListener("abort", stop);
  const context: LambdaContext = {
    awsRequestId: requestId,
    functionName: name,
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - now()),
    signal: abort.signal,
    sleep,
  };
  // The time is kept on the real clock: a handler is a program that runs, also where the machine's clock is virtual.
  const timedOut = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    timedOut.reject(
      // Lambda reports its own time-out as an error of the function.
      new StateError(
        "Sandbox.Timedout",
        JSON.stringify({
          errorType: "Sandbox.Timedout",
          errorMessage: `RequestId: ${requestId} Error: Task timed out after ${timeoutSeconds.toFixed(2)} seconds`,
        }),
      ),
    );
    abort.abort();
  }, 1000 * timeoutSeconds);
  try {
    const result = await Promise.race([handler(event, context), timedOut.promise]);
    return JSON.parse(JSON.stringify(result ?? null));
  } catch (error) {
    throw error instanceof StateError ? error : handlerError(error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** As the Node.js runtime reports what a handler throws: the error's name is what a machine can catch. */
function handlerError(thrown: unknown): StateError {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  return new StateError(
    error.name,
    JSON.stringify({
      errorType: error.name,
      errorMessage: error.message,
      trace: error.stack?.split("\n") ?? [],
    }),
    { cause: error },
  );
}

function metadata(requestId: string, status: number) {
  return { SdkHttpMetadata: { HttpStatusCode: status }, SdkResponseMetadata: { RequestId: requestId } };
}
