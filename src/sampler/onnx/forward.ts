// One pass of new tokens through the model: log-probs of the next token and routes out, cache rows appended. Many new
// tokens and one new token per sequence run in graphs of their own (decode-graph.ts, `ExpertMode`).
import { InvariantError } from "../../failure/errors.ts";
import type { Model } from "../../model/checkpoint.ts";
import type { ModelConfig } from "../../model/config.ts";
import { buildDecodeGraph, decodeWeights, type ExpertMode } from "../../model/decode-graph.ts";
import { routeLayout } from "../../model/routing.ts";
import { type Feeds, type Outputs, Session } from "../../tensor/session.ts";
import { allocateRoutes, type Routes } from "../../trajectory/routes.ts";
import type { BatchCache } from "./kv-cache.ts";

/** What a pass gives for the sequence at `index` of the batch. */
export interface Forwarded {
  /** [V] of the token after the last new one, at its sequence's temperature; nats. */
  logProbs(index: number): Float32Array;
  /** One row per new token; undefined for a model without experts. */
  routes(index: number): Routes | undefined;
}

export class Forward implements AsyncDisposable {
  #config: ModelConfig;
  readonly #sessions: Record<ExpertMode, Session>;
  #weights: Record<ExpertMode, Feeds>;

  private constructor(model: Model, sessions: Record<ExpertMode, Session>) {
    this.#config = model.config;
    this.#sessions = sessions;
    this.#weights = weightsOf(model);
  }

  static async open(model: Model, options: { readonly threads: number }): Promise<Forward> {
    const split = await Session.open(buildDecodeGraph(model.config, "split"), options);
    try {
      const dense = await Session.open(buildDecodeGraph(model.config, "dense"), options);
      return new Forward(model, { split, dense });
    } catch (error) {
      await split[Symbol.asyncDispose]();
      throw error;
    }
  }

  get config(): ModelConfig {
    return this.#config;
  }

  /** Takes other weights of the same model; where this throws, the last ones stay. */
  useWeights(model: Model): void {
    if (JSON.stringify(model.config) !== JSON.stringify(this.#config))
      throw new InvariantError("another model needs another engine");
    this.#weights = weightsOf(model);
    this.#config = model.config;
  }

  /**
   * @param caches of the sequences; their new rows are appended
   * @param fresh new tokens of each sequence, at least one
   * @param temperatures of each sequence; 0 gives the log-probs at 1
   */
  async run(
    mode: ExpertMode,
    caches: BatchCache,
    fresh: readonly (readonly number[])[],
    temperatures: readonly number[],
  ): Promise<Forwarded> {
    const count = fresh.length;
    const padded = Math.max(...fresh.map(row => row.length));
    const tokens = new Int32Array(count * padded);
    const positions = new BigInt64Array(count * padded);
    fresh.forEach((row, index) => {
      tokens.set(row, index * padded);
      for (let t = 0; t < row.length; t++)
        positions[index * padded + t] = BigInt(caches.rowCounts[index] + t);
    });
    const outputs = await this.#sessions[mode].run({
      ...this.#weights[mode],
      ...caches.feeds(),
      tokens: { data: tokens, shape: [count, padded] },
      positions: { data: positions, shape: [count, padded] },
      cached: { data: Int32Array.from(caches.rowCounts), shape: [count] },
      last: { data: Int32Array.from(fresh, (row, index) => index * padded + row.length - 1), shape: [count] },
      "inverse.temperatures": {
        data: Float32Array.from(temperatures, temperature => (temperature === 0 ? 1 : 1 / temperature)),
        shape: [count, 1],
      },
    });
    this.#appendRows(caches, fresh, outputs, padded);
    return {
      logProbs: index => {
        const { data, shape } = outputs.f32("log.probs");
        return data.subarray(index * shape[1], (index + 1) * shape[1]);
      },
      routes: index => this.#routesOf(outputs, index, fresh[index].length, padded),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sessions.split[Symbol.asyncDispose]();
    await this.#sessions.dense[Symbol.asyncDispose]();
  }

  #appendRows(
    caches: BatchCache,
    fresh: readonly (readonly number[])[],
    outputs: Outputs,
    padded: number,
  ): void {
    // Make room only now: the pass would have attended to room that it did not need.
    caches.reserve(caches.count, Math.max(...fresh.map((row, slot) => caches.rowCounts[slot] + row.length)));
    for (let layer = 0; layer < this.#config.layerCount; layer++) {
      const keys = outputs.f32(`new.keys.${layer}`).data;
      const values = outputs.f32(`new.values.${layer}`).data;
      fresh.forEach((row, slot) => {
        caches.append(slot, row.length, layer, "keys", keys, padded);
        caches.append(slot, row.length, layer, "values", values, padded);
      });
    }
    fresh.forEach((row, slot) => {
      caches.rowCounts[slot] += row.length;
    });
  }

  #routesOf(outputs: Outputs, index: number, count: number, padded: number): Routes | undefined {
    const layout = routeLayout(this.#config);
    if (layout === undefined) return undefined;
    const { layerCount, expertsPerToken: k } = layout;
    const routes = allocateRoutes(count, layout);
    const { data, shape } = outputs.i32("routes");
    for (let row = 0; row < count; row++) {
      for (let layer = 0; layer < layerCount; layer++) {
        const from = (layer * shape[1] + index * padded + row) * k;
        for (let choice = 0; choice < k; choice++)
          routes.ids[(row * layerCount + layer) * k + choice] = data[from + choice];
      }
    }
    return routes;
  }
}

function weightsOf({ config, parameters }: Model): Record<ExpertMode, Feeds> {
  const feeds = (mode: ExpertMode): Feeds => Object.fromEntries([...decodeWeights(config, parameters, mode)]);
  return { split: feeds("split"), dense: feeds("dense") };
}
