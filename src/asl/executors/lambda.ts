// The executor of `lambda:invoke`: calls a handler in this process. Event and result pass through JSON, as in Lambda.
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
  /** Fires when the time is over. Lambda has no such signal, so a handler must work without it. */
  readonly signal: AbortSignal;
  /** Waits on the runner's clock. */
  readonly sleep: (ms: number) => Promise<void>;
}

export interface LambdaFunction {
  readonly handler: (event: Json, context: LambdaContext) => Promise<unknown>;
  /** Lambda's default: 3 s. */
  readonly timeoutSeconds?: number;
}

const Arguments = z.looseObject({
  FunctionName: z.string(),
  Payload: z.custom<Json>().optional(),
  InvocationType: z.literal("RequestResponse").optional(),
});

/** @param functions by name */
export function lambdaExecutor(functions: Readonly<Record<string, LambdaFunction>>): TaskExecutor {
  return async (request, context) => {
    const parsed = Arguments.safeParse(request.arguments);
    if (!parsed.success) throw new StateError("States.Runtime", z.prettifyError(parsed.error));
    const { FunctionName: named, Payload: payload = {} } = parsed.data;
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
    return {
      ExecutedVersion: "$LATEST",
      Payload: await invoke(name, found, JSON.parse(text), request.requestId, context),
      StatusCode: 200,
      SdkHttpMetadata: { HttpStatusCode: 200 },
      SdkResponseMetadata: { RequestId: request.requestId },
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
  // The time limit runs on the real clock, also when the machine's clock is virtual: a handler is a real program.
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

/** Reports an error like Lambda's Node.js runtime: a machine can catch it by the error's name. */
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
