// Continuous batching: every sequence that waits for an answer is prefilled with its new tokens and then decoded
// together with all others, one token per step, until its answer ends. Between turns its cache rests under a hash of
// its tokens, where the next turn finds it.
import { createHash } from "node:crypto";
import { InvariantError } from "../../failure/errors.ts";
import type { Model } from "../../model/checkpoint.ts";
import type { ModelConfig } from "../../model/config.ts";
import { buildDecodeGraph, decodeWeights, type ExpertMode } from "../../model/decode-graph.ts";
import { routeLayout } from "../../model/routing.ts";
import { RandomStream } from "../../random/stream.ts";
import { type Feeds, type Outputs, Session } from "../../tensor/session.ts";
import { computeReceipt } from "../../trajectory/receipt.ts";
import {
  allocateRoutes,
  concatRoutes,
  type RouteLayout,
  type Routes,
  sliceRoutes,
} from "../../trajectory/routes.ts";
import type { GenerateRequest, Generation } from "../sampler.ts";
import { drawToken } from "./draw.ts";
import { BatchCache, cacheBytes, EMPTY_CACHE, type ParkedCache } from "./kv-cache.ts";

export interface EngineOptions {
  readonly threads: number;
  /** Parked caches above this are dropped, oldest first; their sequences are prefilled again. */
  readonly cacheBytes: number;
}

type Request = Omit<GenerateRequest, "policy" | "signal">;

interface Sequence {
  readonly request: Request;
  readonly random: RandomStream;
  /** Everything fed or to be fed; the answer is appended. */
  readonly tokens: number[];
  readonly logProbs: number[];
  /** Route rows from `firstRow` on. */
  readonly routes: Routes[];
  readonly firstRow: number;
  readonly resolve: (generation: Generation) => void;
  readonly reject: (error: unknown) => void;
  cancelled: boolean;
}

/** Sequences that are prefilled together may differ this much in length, since all are padded to the longest. */
const PREFILL_PADDING = 1.5;
const PREFILL_TOKENS = 4096;

export class Engine implements AsyncDisposable {
  #model: Model;
  #version: number;
  /** Undefined for a model without experts. */
  readonly #layout: RouteLayout | undefined;
  readonly #prefillSession: Session;
  readonly #stepSession: Session;
  #prefillWeights: Feeds;
  #stepWeights: Feeds;
  readonly #batch: BatchCache;
  readonly #active: Sequence[] = [];
  readonly #waiting: { readonly sequence: Sequence; readonly cache: ParkedCache }[] = [];
  readonly #parked = new Map<string, ParkedCache[]>();
  readonly #cacheLimit: number;
  #parkedBytes = 0;
  #running: Promise<void> | undefined;

  private constructor(
    model: Model,
    version: number,
    sessions: readonly [Session, Session],
    options: EngineOptions,
  ) {
    const { config } = model;
    this.#model = model;
    this.#version = version;
    this.#layout = routeLayout(config);
    [this.#prefillSession, this.#stepSession] = sessions;
    this.#prefillWeights = weightFeeds(model, "split");
    this.#stepWeights = weightFeeds(model, "dense");
    this.#batch = new BatchCache(config);
    this.#cacheLimit = options.cacheBytes;
  }

  static async open(model: Model, version: number, options: EngineOptions): Promise<Engine> {
    const open = (mode: ExpertMode): Promise<Session> =>
      Session.open(buildDecodeGraph(model.config, mode), options);
    return new Engine(model, version, [await open("split"), await open("dense")], options);
  }

  get config(): ModelConfig {
    return this.#model.config;
  }

  /** Resolves once all answers are out. */
  async answered(): Promise<void> {
    await this.#running;
  }

  /** Takes other weights of the same model once all answers are out. Caches go: they hold the old weights' activations. */
  async useWeights(model: Model, version: number): Promise<void> {
    await this.answered();
    if (JSON.stringify(model.config) !== JSON.stringify(this.#model.config)) {
      throw new InvariantError("another model needs another engine", { version });
    }
    const prefillWeights = weightFeeds(model, "split");
    const stepWeights = weightFeeds(model, "dense");
    this.#model = model;
    this.#version = version;
    this.#prefillWeights = prefillWeights;
    this.#stepWeights = stepWeights;
    this.#parked.clear();
    this.#parkedBytes = 0;
  }

  /** @returns the generation, and a function that gives it up */
  submit(request: Request): { readonly generation: Promise<Generation>; readonly cancel: () => void } {
    const { promise, resolve, reject } = Promise.withResolvers<Generation>();
    const cache = this.#takeCache(request);
    const sequence: Sequence = {
      request,
      random: new RandomStream(request.seed),
      tokens: [...request.tokens],
      logProbs: [],
      routes: [],
      firstRow: cache.rowCount,
      resolve,
      reject,
      cancelled: false,
    };
    this.#waiting.push({ sequence, cache });
    this.#running ??= this.#run();
    const cancel = (): void => {
      sequence.cancelled = true;
    };
    return { generation: promise, cancel };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sequence of [...this.#active, ...this.#waiting.map(waiting => waiting.sequence)])
      sequence.cancelled = true;
    await this.#running;
    await this.#prefillSession[Symbol.asyncDispose]();
    await this.#stepSession[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    try {
      while (this.#waiting.length > 0 || this.#active.length > 0) {
        this.#dropCancelled();
        if (this.#waiting.length > 0) await this.#prefill(this.#nextPrefill());
        if (this.#active.length > 0) await this.#step();
        // Messages of the worker's port (new requests) are handled only between tasks.
        await new Promise(resolve => setImmediate(resolve));
      }
    } catch (error) {
      for (const sequence of [
        ...this.#active.splice(0),
        ...this.#waiting.splice(0).map(waiting => waiting.sequence),
      ]) {
        sequence.reject(error);
      }
    } finally {
      this.#running = undefined;
    }
  }

  /** Waiting sequences of like length, so that little is padded. */
  #nextPrefill(): { readonly sequence: Sequence; readonly cache: ParkedCache }[] {
    const newTokens = ({ sequence, cache }: { sequence: Sequence; cache: ParkedCache }): number =>
      sequence.tokens.length - cache.rowCount;
    this.#waiting.sort((a, b) => newTokens(a) - newTokens(b));
    const shortest = newTokens(this.#waiting[0]);
    const limit = Math.max(shortest * PREFILL_PADDING, shortest + 16);
    const fitting = this.#waiting.filter(waiting => newTokens(waiting) <= limit).length;
    const count = Math.max(1, Math.min(fitting, Math.floor(PREFILL_TOKENS / limit)));
    return this.#waiting.splice(0, count);
  }

  async #prefill(
    group: readonly { readonly sequence: Sequence; readonly cache: ParkedCache }[],
  ): Promise<void> {
    const caches = new BatchCache(this.#model.config);
    for (const { cache } of group) caches.push(cache);
    const fresh = group.map(({ sequence, cache }) => sequence.tokens.slice(cache.rowCount));
    const outputs = await this.#forward(
      this.#prefillSession,
      this.#prefillWeights,
      caches,
      fresh,
      group.map(member => member.sequence),
    );
    const padded = longest(fresh);
    this.#appendRows(caches, fresh, outputs, padded);
    group.forEach(({ sequence }, index) => {
      this.#recordRoutes(sequence, outputs, index, fresh[index].length, padded);
    });
    for (let index = group.length - 1; index >= 0; index--) {
      const { sequence } = group[index];
      const cache = caches.remove(index);
      if (this.#sample(sequence, outputs, index)) this.#finish(sequence, cache);
      else {
        this.#active.push(sequence);
        this.#batch.push(cache);
      }
    }
  }

  async #step(): Promise<void> {
    const fresh = this.#active.map(sequence => [sequence.tokens[sequence.tokens.length - 1]]);
    const outputs = await this.#forward(
      this.#stepSession,
      this.#stepWeights,
      this.#batch,
      fresh,
      this.#active,
    );
    this.#appendRows(this.#batch, fresh, outputs, 1);
    this.#active.forEach((sequence, index) => {
      this.#recordRoutes(sequence, outputs, index, 1, 1);
    });
    for (let index = this.#active.length - 1; index >= 0; index--) {
      const sequence = this.#active[index];
      if (!this.#sample(sequence, outputs, index)) continue;
      const cache = this.#batch.remove(index);
      this.#active[index] = this.#active[this.#active.length - 1];
      this.#active.pop();
      this.#finish(sequence, cache);
    }
  }

  async #forward(
    session: Session,
    weights: Feeds,
    caches: BatchCache,
    fresh: readonly (readonly number[])[],
    sequences: readonly Sequence[],
  ): Promise<Outputs> {
    const length = longest(fresh);
    const count = fresh.length;
    const tokens = new Int32Array(count * length);
    const positions = new BigInt64Array(count * length);
    fresh.forEach((row, index) => {
      tokens.set(row, index * length);
      for (let t = 0; t < length; t++) {
        positions[index * length + t] = BigInt(
          Math.min(caches.rowCounts[index] + t, this.#model.config.maxPositions - 1),
        );
      }
    });
    const inverseTemperatures = sequences.map(({ request: { sampling } }) =>
      sampling.temperature === 0 ? 1 : 1 / sampling.temperature,
    );
    return session.run({
      ...weights,
      ...caches.feeds(),
      tokens: { data: tokens, shape: [count, length] },
      positions: { data: positions, shape: [count, length] },
      cached: { data: Int32Array.from(caches.rowCounts), shape: [count] },
      last: { data: Int32Array.from(fresh, (row, index) => index * length + row.length - 1), shape: [count] },
      "inverse.temperatures": { data: Float32Array.from(inverseTemperatures), shape: [count, 1] },
    });
  }

  #appendRows(
    caches: BatchCache,
    fresh: readonly (readonly number[])[],
    outputs: Outputs,
    padded: number,
  ): void {
    // Only now: room that the run itself did not need would have been attended to for nothing.
    caches.reserve(caches.count, Math.max(...fresh.map((row, slot) => caches.rowCounts[slot] + row.length)));
    for (let layer = 0; layer < this.#model.config.layerCount; layer++) {
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

  #recordRoutes(sequence: Sequence, outputs: Outputs, index: number, count: number, padded: number): void {
    if (this.#layout === undefined) return;
    const { layerCount, expertsPerToken: k } = this.#layout;
    const routes = allocateRoutes(count, this.#layout);
    const { data, shape } = outputs.i32("routes");
    for (let row = 0; row < count; row++) {
      for (let layer = 0; layer < layerCount; layer++) {
        const from = (layer * shape[1] + index * padded + row) * k;
        for (let choice = 0; choice < k; choice++)
          routes.ids[(row * layerCount + layer) * k + choice] = data[from + choice];
      }
    }
    sequence.routes.push(routes);
  }

  /** Draws the next token. @returns whether the answer has ended */
  #sample(sequence: Sequence, outputs: Outputs, index: number): boolean {
    const { data, shape } = outputs.f32("log.probs");
    const logProbs = data.subarray(index * shape[1], (index + 1) * shape[1]);
    const { request, random } = sequence;
    const token = drawToken(logProbs, request.sampling, random);
    sequence.tokens.push(token);
    sequence.logProbs.push(logProbs[token]);
    return request.stop.includes(token) || sequence.logProbs.length >= request.maxNewTokens;
  }

  #finish(sequence: Sequence, cache: ParkedCache): void {
    const { request } = sequence;
    const sampled = Int32Array.from(sequence.tokens.slice(request.tokens.length));
    const logProbs = Float32Array.from(sequence.logProbs);
    const routes = this.#layout && newRoutes(sequence, this.#layout);
    const turn = { prompt: request.tokens, sampled, logProbs, routes, policyVersion: this.#version };
    this.#park(sequence.tokens, cache);
    sequence.resolve({
      tokens: sampled,
      logProbs,
      routes,
      finishReason: request.stop.includes(sampled[sampled.length - 1]) ? "stop" : "length",
      policyVersion: this.#version,
      receipt: computeReceipt(turn),
    });
  }

  /**
   * The cache of the caller's previous turn. It ends before the last token of that turn, so it has exactly as many
   * rows as positions have been computed for the caller.
   */
  #takeCache({ tokens, routesHeld }: Request): ParkedCache {
    if (routesHeld === 0) return EMPTY_CACHE;
    const key = hashTokens(tokens.subarray(0, routesHeld + 1));
    const found = this.#parked.get(key)?.pop();
    if (found === undefined) return EMPTY_CACHE;
    if (this.#parked.get(key)?.length === 0) this.#parked.delete(key);
    this.#parkedBytes -= cacheBytes(found);
    return found;
  }

  #park(tokens: readonly number[], cache: ParkedCache): void {
    const key = hashTokens(Int32Array.from(tokens));
    this.#parked.set(key, [...(this.#parked.get(key) ?? []), cache]);
    this.#parkedBytes += cacheBytes(cache);
    for (const [oldest, caches] of this.#parked) {
      if (this.#parkedBytes <= this.#cacheLimit) break;
      this.#parkedBytes -= caches.reduce((sum, parked) => sum + cacheBytes(parked), 0);
      this.#parked.delete(oldest);
    }
  }

  #dropCancelled(): void {
    for (let index = this.#active.length - 1; index >= 0; index--) {
      const sequence = this.#active[index];
      if (!sequence.cancelled) continue;
      this.#batch.remove(index);
      this.#active[index] = this.#active[this.#active.length - 1];
      this.#active.pop();
      sequence.reject(new DOMException("the caller gave up", "AbortError"));
    }
    for (const waiting of this.#waiting.splice(0)) {
      if (waiting.sequence.cancelled)
        waiting.sequence.reject(new DOMException("the caller gave up", "AbortError"));
      else this.#waiting.push(waiting);
    }
  }
}

/** The rows that the caller does not hold yet. */
function newRoutes({ request, routes, firstRow, tokens }: Sequence, layout: RouteLayout): Routes {
  const rows = concatRoutes(routes, layout);
  if (firstRow + rows.rowCount !== tokens.length - 1) {
    throw new InvariantError("route rows do not cover the stream", {
      firstRow,
      rows: rows.rowCount,
      tokens: tokens.length,
    });
  }
  return sliceRoutes(rows, request.routesHeld - firstRow, rows.rowCount);
}

function weightFeeds({ config, parameters }: Model, mode: ExpertMode): Feeds {
  return Object.fromEntries([...decodeWeights(config, parameters, mode)]);
}

function longest(rows: readonly (readonly number[])[]): number {
  return rows.reduce((length, row) => Math.max(length, row.length), 1);
}

function hashTokens(tokens: Int32Array): string {
  return createHash("sha256")
    .update(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength))
    .digest("base64");
}
