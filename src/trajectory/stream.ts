// A token stream under construction. Token ids are the source of truth: what the sampler returned is appended as it
// came, what the harness adds is encoded once and appended, and nothing is ever tokenised again.
import { InvariantError } from "../failure/errors.ts";
import type { Chunk, Turn } from "./chunk.ts";
import { concatRoutes, type RouteLayout, type Routes } from "./routes.ts";

/** The parts of a sampler's answer that a stream keeps. */
interface SampledAnswer {
  readonly tokens: Int32Array;
  readonly logProbs: Float32Array;
  readonly routes?: Routes | undefined;
  readonly policyVersion: number;
  readonly receipt: Uint8Array;
}

export class TokenStream {
  // Room of which the first `#length` entries are used; the rest of mask and log-probs is 0.
  #tokens = new Int32Array(256);
  #mask = new Uint8Array(256);
  #logProbs = new Float32Array(256);
  #length = 0;
  readonly #routes: Routes[] = [];
  readonly #turns: Turn[] = [];
  /** Pieces of routes that a fork took over from the stream it came from. */
  #routesBefore = 0;
  #routesHeld = 0;

  /**
   * A new stream that goes on after the first `turnCount` answers of this one. Those answers count as given there: they
   * are trained where they were sampled, and only there.
   */
  fork(turnCount: number): TokenStream {
    const last = this.#turns[turnCount - 1];
    if (last === undefined) {
      throw new InvariantError("a stream goes on after one of its answers", {
        turnCount,
        turns: this.#turns.length,
      });
    }
    const fork = new TokenStream();
    fork.appendGiven(this.#tokens.subarray(0, last.end));
    const held = this.#routes.length === 0 ? 0 : this.#routesBefore + turnCount;
    fork.#routes.push(...this.#routes.slice(0, held));
    fork.#routesBefore = held;
    fork.#routesHeld = last.end - 1;
    return fork;
  }

  /** Tokens up to and including each answer. */
  get answerEnds(): readonly number[] {
    return this.#turns.map(({ end }) => end);
  }

  get length(): number {
    return this.#length;
  }

  /** Positions that the answers so far have computed. Routes of the next answer, where there are any, start there. */
  get routesHeld(): number {
    return this.#routesHeld;
  }

  /** A copy. */
  tokens(): Int32Array {
    return this.#tokens.slice(0, this.#length);
  }

  /** Adds tokens that the policy did not choose: prompt, observation, template glue. */
  appendGiven(tokens: ArrayLike<number>): void {
    this.#makeRoom(tokens.length);
    this.#tokens.set(tokens, this.#length);
    this.#length += tokens.length;
  }

  /** Adds an answer of the sampler to the stream it was asked with. */
  appendSampled({ tokens, logProbs, routes, policyVersion, receipt }: SampledAnswer): void {
    const start = this.#length;
    const end = start + tokens.length;
    if (tokens.length === 0 || tokens.length !== logProbs.length) {
      throw new InvariantError("an answer needs one log-prob per token", {
        tokens: tokens.length,
        logProbs: logProbs.length,
      });
    }
    if (routes !== undefined && this.#routesHeld + routes.rowCount !== end - 1) {
      throw new InvariantError("routes missing or repeated", {
        held: this.#routesHeld,
        got: routes.rowCount,
        expectedEnd: end - 1,
      });
    }
    this.#turns.push({ start, end, routesStart: this.#routesHeld, policyVersion, receipt });
    this.#makeRoom(tokens.length);
    this.#tokens.set(tokens, start);
    this.#mask.fill(1, start, end);
    this.#logProbs.set(logProbs, start);
    this.#length = end;
    if (routes !== undefined) this.#routes.push(routes);
    this.#routesHeld = end - 1;
  }

  /**
   * The finished chunk. Tokens added after the last answer were never fed to the model and are left out.
   *
   * @param layout undefined for a stream without routes
   */
  finish(layout: RouteLayout | undefined): Chunk {
    const end = this.#turns.at(-1)?.end;
    if (end === undefined) throw new InvariantError("a chunk without a sampled token");
    if (layout === undefined && this.#routes.length > 0)
      throw new InvariantError("routes without a model that has experts", { pieces: this.#routes.length });
    return {
      tokens: this.#tokens.slice(0, end),
      mask: this.#mask.slice(0, end),
      logProbs: this.#logProbs.slice(0, end),
      ...(layout && { routes: concatRoutes(this.#routes, layout) }),
      turns: [...this.#turns],
    };
  }

  #makeRoom(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#tokens.length) return;
    const room = Math.max(needed, 2 * this.#tokens.length);
    const old = { tokens: this.#tokens, mask: this.#mask, logProbs: this.#logProbs };
    this.#tokens = new Int32Array(room);
    this.#mask = new Uint8Array(room);
    this.#logProbs = new Float32Array(room);
    this.#tokens.set(old.tokens);
    this.#mask.set(old.mask);
    this.#logProbs.set(old.logProbs);
  }
}
