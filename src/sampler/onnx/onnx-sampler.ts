// The sampler of a laptop: ONNX Runtime in a worker thread, all running episodes in one batch.
import "../../tensor/no-telemetry.ts";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { type ErrorMessage, fromErrorMessage } from "../../failure/error-message.ts";
import { Failure } from "../../failure/errors.ts";
import { gaveUp } from "../gave-up.ts";
import type { GenerateRequest, Generation, Sampler } from "../sampler.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./messages.ts";

/** Wait this long for the step that is being computed when the sampler is closed; no other step begins. */
const CLOSE_TIMEOUT_MS = 60_000;
const noop = (): void => undefined;

interface Pending {
  readonly worker: Worker;
  readonly resolve: (generation: Generation) => void;
  readonly reject: (error: unknown) => void;
}

export class OnnxSampler implements Sampler {
  readonly #settings: WorkerSettings;
  #worker: Worker | undefined;
  /** Requests that have no answer yet. */
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #isClosed = false;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
    this.#worker = this.#start();
  }

  async generate({ signal, ...request }: GenerateRequest): Promise<Generation> {
    if (signal?.aborted) throw gaveUp();
    if (this.#isClosed) throw unavailable(new Error("it is closed"));
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Generation>();
    this.#pending.set(id, { worker, resolve, reject });
    // The thread may be loading or compiling a policy and hear of it only later; the caller does not wait for that.
    const leave = (): void => {
      reject(gaveUp());
      worker.postMessage({ kind: "cancel", id } satisfies ToWorker);
    };
    signal?.addEventListener("abort", leave, { once: true });
    try {
      worker.postMessage({ kind: "generate", id, request } satisfies ToWorker);
      return await promise;
    } finally {
      this.#pending.delete(id);
      signal?.removeEventListener("abort", leave);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = once(worker, "exit").catch(noop);
    worker.postMessage({ kind: "close" } satisfies ToWorker);
    const timeout = new AbortController();
    await Promise.race([ended, sleep(CLOSE_TIMEOUT_MS, undefined, { signal: timeout.signal }).catch(noop)]);
    timeout.abort();
    await worker.terminate();
  }

  /** A thread that died takes its requests with it; the next request starts another one. */
  #start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: this.#settings });
    const end = (error: Error): void => {
      if (this.#worker === worker) this.#worker = undefined;
      for (const pending of this.#pending.values())
        if (pending.worker === worker) pending.reject(unavailable(error));
      void worker.terminate();
    };
    worker.on("message", message => this.#receive(message));
    worker.on("messageerror", end);
    worker.on("error", end);
    worker.on("exit", code => end(new Error(`the sampler's thread ended with code ${code}`)));
    return worker;
  }

  #receive(message: FromWorker): void {
    const pending = this.#pending.get(message.id);
    if (message.kind === "generated") pending?.resolve(message.generation);
    else pending?.reject(errorOf(message.error));
  }
}

function errorOf(message: ErrorMessage): Error {
  if (message.name === "AbortError") return gaveUp();
  const error = fromErrorMessage(message);
  // A policy that is not whole or not finite stays so, however often it is asked for.
  return message.name === "InputError" || error instanceof Failure ? error : unavailable(error);
}

function unavailable(cause: Error): Failure {
  const text = `the sampler could not answer: ${cause.message}`;
  return new Failure("SamplerUnavailable", text, { retryable: true, cause });
}
