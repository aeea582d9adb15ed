// Decides which errors a Retry or Catch matches, and how long a retrier waits. At worst a
// retrier of n tries adds n tries and n waits to a state: Σ min(interval · rate^k, maxDelay) seconds, k = 0 … n-1.
// Source: Amazon States Language, "Errors" and "Retrying after error"; developer guide, "Error names".
import type { RandomStream } from "../random/stream.ts";
import type { Retrier } from "./machine.ts";

/** Ends every execution: no Retry or Catch matches it, not even by its own name. */
const ALWAYS_FATAL = "States.Runtime";

/** @param errorName undefined for a failure without a name */
export function matchesError(errorEquals: readonly string[], errorName: string | undefined): boolean {
  if (errorName === ALWAYS_FATAL) return false;
  return errorEquals.some(pattern => {
    switch (pattern) {
      case "States.ALL":
        return errorName !== "States.DataLimitExceeded";
      case "States.TaskFailed":
        // "any known error name except for States.Timeout"; a missed heartbeat is a kind of it.
        return !["States.Timeout", "States.HeartbeatTimeout", "States.DataLimitExceeded"].includes(
          errorName ?? "",
        );
      case "States.Timeout":
        return errorName === "States.Timeout" || errorName === "States.HeartbeatTimeout";
      default:
        return pattern === errorName;
    }
  });
}

/**
 * Wait before a retry.
 *
 *   min(interval · backoffRate^(n-1), maxDelay), with FULL jitter a uniform share of it
 *
 * @param retryNumber n, 1 for the first retry of this retrier
 * @returns milliseconds
 */
export function retryDelayMs(retrier: Retrier, retryNumber: number, random: RandomStream): number {
  const seconds = Math.min(
    retrier.intervalSeconds * retrier.backoffRate ** (retryNumber - 1),
    retrier.maxDelaySeconds ?? Number.POSITIVE_INFINITY,
    99_999_999,
  );
  return 1000 * seconds * (retrier.jitter === "FULL" ? random.uniform() : 1);
}
