// Continuous batching: a sequence that waits for an answer is prefilled with its new tokens, in pieces where they are
// many, and then decoded together with all others, one token per step, until its answer ends. Between turns its cache
// is parked under its tokens, where the next turn finds it.
import type { Model } from "../../model/checkpoint.ts";
import type { ModelConfig } from "../../model/config.ts";
import { routeLayout } from "../../model/routing.ts";
import { assertRequest } from "../assert-request.ts";
import { gaveUp } from "../gave-up.ts";
import type { Generation } from "../sampler.ts";
import { Forward, type Forwarded } from "./forward.ts";
import { BatchCache, EMPTY_CACHE } from "./kv-cache.ts";
import { ParkedCaches } from "./parked-caches.ts";
import { choosePrefill, DEFAULT_SCORE_BYTES, type PrefillRoom, pieceOf } from "./prefill-plan.ts";
import { type EngineRequest, Sequence } from "./sequence.ts";

export interface EngineOptions {
  readonly threads: number;
  /** Parked caches above this are dropped, oldest first; their sequences are prefilled again. */
  readonly cacheBytes: number;
  /** Room for the attention scores of one prefill; longer prompts are fed in pieces. */
  readonly scoreBytes?: number;
}

/** Sequences that are decoded together; slot i of the cache belongs to sequence i. */
interface Batch {
  readonly sequences: Sequence[];
  readonly cache: BatchCache;
}

export class Engine implements AsyncDisposable {
  readonly #forward: Forward;
  #version: number;
  /**
   * Every request that has no answer yet, in the order in which they are prefilled. A request leaves this set only with
   * its answer or its refusal, so nothing that throws can leave one behind.
   */
  readonly #open = new Set<Sequence>();
  #batch: Batch;
  readonly #parked: ParkedCaches;
  readonly #room: PrefillRoom;
  #running: Promise<void> | undefined;

  private constructor(
    forward: Forward,
    version: number,
    { cacheBytes, scoreBytes = DEFAULT_SCORE_BYTES }: EngineOptions,
  ) {
    this.#forward = forward;
    this.#version = version;
    this.#parked = new ParkedCaches(cacheBytes);
    this.#room = { headCount: forward.config.headCount, scoreBytes };
    this.#batch = this.#emptyBatch();
  }

  static async open(model: Model, version: number, options: EngineOptions): Promise<Engine> {
    return new Engine(await Forward.open(model, options), version, options);
  }

  get config(): ModelConfig {
    return this.#forward.config;
  }

  /** Resolves once all answers are out. */
  async answered(): Promise<void> {
    await this.#running;
  }

  /** Takes other weights of the same model once all answers are out. Caches go: they hold the old weights' activations. */
  async useWeights(model: Model, version: number): Promise<void> {
    await this.answered();
    this.#forward.useWeights(model);
    this.#version = version;
    this.#parked.clear();
  }

  /**
   * @returns the generation, and a function that gives it up. The generation rejects with InputError when the model
   * cannot do what is asked, Failure PolicyNotFinite, AbortError, or with what its computation threw when it ran alone
   */
  submit(request: EngineRequest): { readonly generation: Promise<Generation>; readonly cancel: () => void } {
    try {
      assertRequest(request, this.config);
    } catch (error) {
      return { generation: Promise.reject(error), cancel: () => {} };
    }
    // The cache of the caller's previous turn ends before the last token of that turn, so it has exactly as many rows
    // as the caller holds routes.
    const sequence = new Sequence(
      request,
      this.#parked.take(request.tokens.subarray(0, request.routesHeld + 1)),
    );
    this.#open.add(sequence);
    this.#running ??= this.#run();
    const cancel = (): void => {
      sequence.cancelled = true;
    };
    return { generation: sequence.answer.promise, cancel };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const sequence of this.#open) sequence.cancelled = true;
    await this.#running;
    await this.#forward[Symbol.asyncDispose]();
  }

  async #run(): Promise<void> {
    try {
      while (this.#open.size > 0) {
        this.#dropCancelled();
        const alone = [...this.#open].find(({ isAlone }) => isAlone);
        await (alone === undefined ? this.#advance() : this.#generateAlone(alone));
        // Messages of the worker's port (new requests) are handled only between tasks.
        await new Promise(resolve => setImmediate(resolve));
      }
    } catch (error) {
      for (const sequence of this.#open) this.#refuse(sequence, error);
      this.#batch = this.#emptyBatch();
    } finally {
      this.#running = undefined;
    }
  }

  /** One piece of prefill and one token of every sequence that is being decoded. */
  async #advance(): Promise<void> {
    const waiting = [...this.#open].filter(({ isDecoding }) => !isDecoding);
    const group = choosePrefill(waiting, this.#room);
    try {
      if (group.length > 0) await this.#prefill(group);
    } catch {
      for (const sequence of group) sequence.restartAlone();
    }
    const batch = this.#batch;
    try {
      for (const sequence of this.#open)
        if (sequence.isDecoding && !batch.sequences.includes(sequence)) join(batch, sequence);
      if (batch.sequences.length > 0) await this.#step(batch);
    } catch {
      // The batch's cache may be half written: it goes, and its sequences begin again, each by itself.
      this.#batch = this.#emptyBatch();
      for (const sequence of batch.sequences) if (this.#open.has(sequence)) sequence.restartAlone();
    }
  }

  /** Runs a sequence whose batch failed to its end. When it fails by itself, it is the one to refuse. */
  async #generateAlone(sequence: Sequence): Promise<void> {
    const batch = this.#emptyBatch();
    const goesOn = (): boolean => this.#open.has(sequence) && !sequence.cancelled;
    try {
      while (goesOn()) {
        if (!sequence.isDecoding) await this.#prefill([sequence]);
        else if (batch.sequences.length === 0) join(batch, sequence);
        else await this.#step(batch);
        await new Promise(resolve => setImmediate(resolve));
      }
    } catch (error) {
      this.#refuse(sequence, error);
    }
  }

  /** Feeds the next piece of each prompt. A sequence whose prompt is then complete gets its first token. */
  async #prefill(group: readonly Sequence[]): Promise<void> {
    const caches = new BatchCache(this.config);
    for (const { cache } of group) caches.push(cache);
    const fresh = group.map(sequence => sequence.fresh(pieceOf(sequence, this.#room)));
    const forwarded = await this.#forward.run("split", caches, fresh, group.map(temperatureOf));
    for (let index = group.length - 1; index >= 0; index--) {
      const sequence = group[index];
      const isWhole = fresh[index].length === sequence.freshCount;
      sequence.addRoutes(forwarded.routes(index));
      sequence.cache = caches.remove(index);
      // The next piece waits behind the other prompts.
      if (!isWhole) this.#moveToEnd(sequence);
      else if (!this.#sample(sequence, forwarded, index)) this.#park(sequence);
    }
  }

  /** Gives every sequence of a batch its next token. */
  async #step(batch: Batch): Promise<void> {
    const { sequences, cache } = batch;
    const fresh = sequences.map(({ lastToken }) => [lastToken]);
    const forwarded = await this.#forward.run("dense", cache, fresh, sequences.map(temperatureOf));
    for (let index = sequences.length - 1; index >= 0; index--) {
      const sequence = sequences[index];
      sequence.addRoutes(forwarded.routes(index));
      if (this.#sample(sequence, forwarded, index)) continue;
      leave(batch, index);
      this.#park(sequence);
    }
  }

  /** Draws the next token. @returns whether the sequence goes on; otherwise it is answered or refused now */
  #sample(sequence: Sequence, forwarded: Forwarded, index: number): boolean {
    try {
      sequence.sample(forwarded, index);
      if (!sequence.isEnded) return true;
      const generation = sequence.finish(routeLayout(this.config), this.#version);
      this.#open.delete(sequence);
      sequence.answer.resolve(generation);
    } catch (error) {
      this.#refuse(sequence, error);
    }
    return false;
  }

  #park(sequence: Sequence): void {
    this.#parked.park(Int32Array.from(sequence.tokens), sequence);
  }

  #moveToEnd(sequence: Sequence): void {
    this.#open.delete(sequence);
    this.#open.add(sequence);
  }

  #refuse(sequence: Sequence, error: unknown): void {
    this.#open.delete(sequence);
    sequence.answer.reject(error);
  }

  #dropCancelled(): void {
    for (const sequence of this.#open) {
      if (!sequence.cancelled) continue;
      const slot = this.#batch.sequences.indexOf(sequence);
      if (slot !== -1) leave(this.#batch, slot);
      this.#refuse(sequence, gaveUp());
    }
  }

  #emptyBatch(): Batch {
    return { sequences: [], cache: new BatchCache(this.config) };
  }
}

function join({ sequences, cache }: Batch, sequence: Sequence): void {
  cache.push(sequence.cache);
  sequences.push(sequence);
  sequence.cache = EMPTY_CACHE;
}

/** Takes a sequence out of a batch, with its cache; the last one moves into its slot. */
function leave({ sequences, cache }: Batch, slot: number): void {
  const sequence = sequences[slot];
  sequence.cache = cache.remove(slot);
  sequences[slot] = sequences[sequences.length - 1];
  sequences.pop();
}

function temperatureOf({ request }: Sequence): number {
  return request.sampling.temperature;
}
