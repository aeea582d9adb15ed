// What goes between the sampler's worker thread and its client.
import type { ErrorMessage } from "../../failure/error-message.ts";
import type { GenerateRequest, Generation } from "../sampler.ts";

export interface WorkerSettings {
  readonly storeUrl: string;
  readonly threads: number;
  readonly cacheBytes: number;
}

export type ToWorker =
  | { readonly kind: "generate"; readonly id: number; readonly request: Omit<GenerateRequest, "signal"> }
  | { readonly kind: "cancel"; readonly id: number }
  /** Gives up what is running, and ends the thread. */
  | { readonly kind: "close" };

export type FromWorker =
  | { readonly kind: "generated"; readonly id: number; readonly generation: Generation }
  | { readonly kind: "failed"; readonly id: number; readonly error: ErrorMessage };
