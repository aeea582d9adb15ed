// The sampler of a laptop: ONNX Runtime in a worker thread, all running episodes in one batch.
import "../../tensor/no-telemetry.ts";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { type ErrorMessage, fromErrorMessage } from "../../failure/error-message.ts";
import { Failure } from "../../failure/errors.ts";
import type { GenerateRequest, Generation, Sampler } from "../sampler.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./messages.ts";

/** For the step that is being computed; the next is not begun. */
const CLOSE_PATIENCE_MS = 60_000;
const noop = (): void => undefined;

interface Pending {
  readonly resolve: (generation: Generation) => void;
  readonly reject: (error: unknown) => void;
}

export class OnnxSampler implements Sampler {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #ended: Error | undefined;

  constructor(settings: WorkerSettings) {
    this.#worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: settings });
    this.#worker.on("message", message => this.#receive(message));
    this.#worker.on("error", error => this.#end(error));
    this.#worker.on("exit", code => this.#end(new Error(`the sampler's thread ended with code ${code}`)));
  }

  generate({ signal, ...request }: GenerateRequest): Promise<Generation> {
    if (this.#ended !== undefined) return Promise.reject(unavailable(this.#ended));
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Generation>();
    this.#pending.set(id, { resolve, reject });
    const cancel = (): void => this.#send({ kind: "cancel", id });
    signal?.addEventListener("abort", cancel, { once: true });
    this.#send({ kind: "generate", id, request });
    return promise.finally(() => signal?.removeEventListener("abort", cancel));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended !== undefined) return;
    const ended = once(this.#worker, "exit").catch(() => undefined);
    this.#send({ kind: "close" });
    const patience = new AbortController();
    await Promise.race([ended, sleep(CLOSE_PATIENCE_MS, undefined, { signal: patience.signal }).catch(noop)]);
    patience.abort();
    await this.#worker.terminate();
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.kind === "generated") pending?.resolve(message.generation);
    else pending?.reject(errorOf(message.error));
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#pending.values()) reject(unavailable(this.#ended));
    this.#pending.clear();
  }
}

function errorOf(error: ErrorMessage): Error {
  if (error.name === "AbortError") return new DOMException(error.message, "AbortError");
  // A policy that is not whole stays so however often it is asked for.
  return error.name === "InputError" ? fromErrorMessage(error) : unavailable(fromErrorMessage(error));
}

function unavailable(cause: unknown): Failure {
  const detail = cause instanceof Error ? cause.message : String(cause);
  return new Failure("SamplerUnavailable", `the sampler could not answer: ${detail}`, {
    retryable: true,
    cause,
  });
}
