// The contract of a sampler: token ids in, token ids out, with everything the trainer needs to prove and replay what
// happened. Nothing here knows text.
import type { Routes } from "../trajectory/routes.ts";

export interface SamplingSettings {
  /** 0 takes the likeliest token (evaluation only). */
  readonly temperature: number;
  /** 1 keeps every token (training refuses anything else: its distribution would be another one). */
  readonly topP: number;
  /** 0 keeps every token. */
  readonly topK: number;
}

/** Which weights to sample from: the version's number and where its folder lies in the store. */
export interface PolicyReference {
  readonly version: number;
  readonly prefix: string;
}

export interface GenerateRequest {
  /** The whole stream so far; a sampler may hold a prefix of it in its cache. */
  readonly tokens: Int32Array;
  /** Positions that earlier answers have computed; the routes of this answer start there. */
  readonly routesHeld: number;
  readonly sampling: SamplingSettings;
  /** Sampling ends with one of these ids, which is part of the answer. */
  readonly stop: readonly number[];
  readonly maxNewTokens: number;
  /** Derived seed of this turn. */
  readonly seed: string;
  readonly policy: PolicyReference;
  readonly signal?: AbortSignal | undefined;
}

export interface Generation {
  readonly tokens: Int32Array;
  /** log π of each sampled token at the sampling temperature, nats. */
  readonly logProbs: Float32Array;
  /**
   * Rows [routesHeld, N − 1) of the stream including the answer; the last sampled token was never fed. None for a dense
   * model.
   */
  readonly routes?: Routes | undefined;
  /** `length` says that maxNewTokens ran out: there is no stop token. */
  readonly finishReason: "stop" | "length";
  readonly policyVersion: number;
  /** Made where the tokens were sampled (src/trajectory/receipt.ts). */
  readonly receipt: Uint8Array;
}

export interface Sampler extends AsyncDisposable {
  /**
   * @throws Failure SamplerUnavailable when it cannot answer, InputError when the policy is not whole, AbortError when
   * `signal` fires
   */
  generate(request: GenerateRequest): Promise<Generation>;
}
