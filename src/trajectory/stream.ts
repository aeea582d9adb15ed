// A token stream under construction. Token ids are the source of truth: what the sampler returned is appended as it
// came, what the harness adds is encoded once and appended, and nothing is ever tokenised again.
import { InvariantError } from "../failure/errors.ts";
import type { Chunk, Turn } from "./chunk.ts";
import { concatRoutes, type RouteLayout, type Routes } from "./routes.ts";

/** What a stream takes from a sampler's answer. */
interface SampledAnswer {
  readonly tokens: Int32Array;
  readonly logProbs: Float32Array;
  readonly routes?: Routes | undefined;
  readonly policyVersion: number;
  readonly receipt: Uint8Array;
}

export class TokenStream {
  readonly #tokens: number[] = [];
  readonly #mask: number[] = [];
  readonly #logProbs: number[] = [];
  readonly #routes: Routes[] = [];
  readonly #turns: Turn[] = [];
  /** Pieces of routes that a fork took over from the stream it came from. */
  #routesBefore = 0;
  #routesHeld = 0;

  /**
   * A stream of its own that goes on after the first `turnCount` answers of this one. To it they are given: they are
   * trained where they were sampled, and only there.
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
    fork.appendGiven(this.#tokens.slice(0, last.end));
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
    return this.#tokens.length;
  }

  /** Positions that the answers so far have computed. Routes of the next answer, where there are any, start there. */
  get routesHeld(): number {
    return this.#routesHeld;
  }

  tokens(): Int32Array {
    return Int32Array.from(this.#tokens);
  }

  /** Adds what the policy did not choose: prompt, observation, template glue. */
  appendGiven(tokens: readonly number[]): void {
    for (const token of tokens) {
      this.#tokens.push(token);
      this.#mask.push(0);
      this.#logProbs.push(0);
    }
  }

  /** Adds an answer of the sampler to the stream it was asked with. */
  appendSampled({ tokens, logProbs, routes, policyVersion, receipt }: SampledAnswer): void {
    const start = this.#tokens.length;
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
    tokens.forEach((token, index) => {
      this.#tokens.push(token);
      this.#mask.push(1);
      this.#logProbs.push(logProbs[index]);
    });
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
      tokens: Int32Array.from(this.#tokens.slice(0, end)),
      mask: Uint8Array.from(this.#mask.slice(0, end)),
      logProbs: Float32Array.from(this.#logProbs.slice(0, end)),
      ...(layout && { routes: concatRoutes(this.#routes, layout) }),
      turns: this.#turns,
    };
  }
}
