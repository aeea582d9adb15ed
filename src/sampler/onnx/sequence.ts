// One request on its way through the engine: the tokens so far, what was sampled of them, and who waits for the answer.
import { Failure, InvariantError } from "../../failure/errors.ts";
import { RandomStream } from "../../random/stream.ts";
import type { PrefixHashes } from "../../trajectory/prefix-hashes.ts";
import { computeReceipt } from "../../trajectory/receipt.ts";
import { concatRoutes, type RouteLayout, type Routes, sliceRoutes } from "../../trajectory/routes.ts";
import type { GenerateRequest, Generation } from "../sampler.ts";
import { drawToken } from "./draw.ts";
import type { Forwarded } from "./forward.ts";
import { EMPTY_CACHE, type ParkedCache } from "./kv-cache.ts";
import type { Parked } from "./parked-caches.ts";

export type EngineRequest = Omit<GenerateRequest, "policy" | "signal">;

export class Sequence {
  readonly request: EngineRequest;
  readonly answer = Promise.withResolvers<Generation>();
  cancelled = false;
  /** Runs by itself, because a batch that it was part of failed. */
  isAlone = false;
  /** Rows computed so far, while the sequence is in no batch. */
  cache: ParkedCache;
  readonly prefixes: PrefixHashes;
  /** The prompt, and what was sampled so far. */
  tokens: number[];
  #logProbs: number[] = [];
  /** Route rows from `#firstRow` on. */
  #routes: Routes[] = [];
  #firstRow: number;
  #random: RandomStream;

  /** @param parked by the caller's previous turn, or empty */
  constructor(request: EngineRequest, { cache, prefixes }: Parked) {
    this.request = request;
    this.cache = cache;
    this.prefixes = prefixes;
    this.tokens = [...request.tokens];
    this.#firstRow = cache.rowCount;
    this.#random = new RandomStream(request.seed);
  }

  /** Forgets what was sampled: the same tokens will be sampled again, from the prompt alone. */
  restartAlone(): void {
    const { tokens, seed } = this.request;
    this.isAlone = true;
    this.cache = EMPTY_CACHE;
    this.tokens = [...tokens];
    this.#logProbs = [];
    this.#routes = [];
    this.#firstRow = 0;
    this.#random = new RandomStream(seed);
  }

  /** Whether the prompt is computed and the first token sampled. */
  get isDecoding(): boolean {
    return this.#logProbs.length > 0;
  }

  get isEnded(): boolean {
    const { stop, maxNewTokens } = this.request;
    const last = this.tokens[this.tokens.length - 1];
    return this.isDecoding && (stop.includes(last) || this.#logProbs.length >= maxNewTokens);
  }

  /** Tokens that are not in the cache yet. */
  get freshCount(): number {
    return this.tokens.length - this.cache.rowCount;
  }

  /** The next `count` tokens that are not in the cache yet. */
  fresh(count: number): number[] {
    const from = this.cache.rowCount;
    return this.tokens.slice(from, from + count);
  }

  get lastToken(): number {
    return this.tokens[this.tokens.length - 1];
  }

  addRoutes(routes: Routes | undefined): void {
    if (routes !== undefined) this.#routes.push(routes);
  }

  /**
   * Draws the next token.
   *
   * @throws Failure PolicyNotFinite when the model's numbers are none
   */
  sample(forwarded: Forwarded, index: number): void {
    const logProbs = forwarded.logProbs(index);
    const { sampling } = this.request;
    // Doubles hold any sum of float32 numbers, so the sum is finite exactly when all of them are.
    let sum = 0;
    for (const logProb of logProbs) sum += logProb;
    if (!Number.isFinite(sum)) {
      const at = logProbs.findIndex(logProb => !Number.isFinite(logProb));
      throw new Failure(
        "PolicyNotFinite",
        `log-prob of token ${at} is ${logProbs[at]} after ${this.tokens.length} tokens at temperature ${sampling.temperature}`,
        { retryable: false },
      );
    }
    const { id, logProb } = drawToken(logProbs, sampling, this.#random);
    this.tokens.push(id);
    this.#logProbs.push(logProb);
  }

  /** The answer, with its receipt. */
  finish(layout: RouteLayout | undefined, policyVersion: number): Generation {
    const { request, tokens } = this;
    const sampled = Int32Array.from(tokens.slice(request.tokens.length));
    const logProbs = Float32Array.from(this.#logProbs);
    const routes = layout && this.#newRoutes(layout);
    const turn = { prompt: request.tokens, sampled, logProbs, routes, policyVersion };
    return {
      tokens: sampled,
      logProbs,
      routes,
      finishReason: request.stop.includes(this.lastToken) ? "stop" : "length",
      policyVersion,
      receipt: computeReceipt(turn, this.prefixes),
    };
  }

  /** The rows that the caller does not hold yet. */
  #newRoutes(layout: RouteLayout): Routes {
    const rows = concatRoutes(this.#routes, layout);
    if (this.#firstRow + rows.rowCount !== this.tokens.length - 1) {
      throw new InvariantError("route rows do not cover the stream", {
        firstRow: this.#firstRow,
        rows: rows.rowCount,
        tokens: this.tokens.length,
      });
    }
    return sliceRoutes(rows, this.request.routesHeld - this.#firstRow, rows.rowCount);
  }
}
