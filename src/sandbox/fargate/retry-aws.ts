// Repeats a request to AWS while the reason why it was refused may pass.
import { setTimeout as sleep } from "node:timers/promises";
import { type EcsRefusal, mayPass, refusalOfError } from "./ecs-refusal.ts";

/** Pauses double from the first to the longest, each a random part of that ("full jitter"), so that drivers spread out. */
export interface Pauses {
  readonly firstMs: number;
  readonly longestMs: number;
}

export interface RetryOptions {
  readonly pauses: Pauses;
  /** Unix ms. */
  readonly untilMs: number;
  /** Ends a pause, with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Not repeated, though it may pass: there is another way. */
  readonly isFinal?: (refusal: EcsRefusal) => boolean;
  /** Called before another attempt is made. */
  readonly onRepeat?: (() => void) | undefined;
}

/** @throws EcsRefusal the last one */
export async function retryAws<Value>(
  attempt: () => Promise<Value>,
  { pauses, untilMs, signal, isFinal = () => false, onRepeat }: RetryOptions,
): Promise<Value> {
  for (let count = 0; ; count++) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      const refusal = refusalOfError(error);
      const pauseMs = jittered(Math.min(pauses.firstMs * 2 ** count, pauses.longestMs));
      if (!mayPass(refusal) || isFinal(refusal) || Date.now() + pauseMs > untilMs) throw refusal;
      onRepeat?.();
      await pause(pauseMs, signal);
    }
  }
}

/** @throws the signal's reason */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
  signal?.throwIfAborted();
}

export function jittered(ms: number): number {
  return Math.random() * ms;
}
