// Runs the train stage in a thread of its own, which keeps its compiled graphs from one iteration to the next.
import "../tensor/no-telemetry.ts";
import { Worker } from "node:worker_threads";
import { type ErrorMessage, fromErrorMessage } from "../failure/error-message.ts";
import type { TrainInput } from "./train.ts";

export interface TrainerSettings {
  readonly storeUrl: string;
  readonly threads: number;
}

export type FromTrainer =
  | { readonly kind: "done" }
  | { readonly kind: "step"; readonly done: number; readonly total: number }
  | { readonly kind: "failed"; readonly error: ErrorMessage };

export class TrainerThread implements AsyncDisposable {
  readonly #worker: Worker;
  #ended: Error | undefined;

  constructor(settings: TrainerSettings) {
    this.#worker = new Worker(new URL("./train-worker.ts", import.meta.url), { workerData: settings });
    this.#worker.on("exit", code => {
      this.#ended ??= new Error(`the trainer's thread ended with code ${code}`);
    });
  }

  /** One iteration at a time. @throws what the stage throws */
  train(input: TrainInput, onStep?: (done: number, total: number) => void): Promise<void> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const receive = (message: FromTrainer): void => {
      if (message.kind === "step") onStep?.(message.done, message.total);
      else if (message.kind === "done") resolve();
      else reject(fromErrorMessage(message.error));
    };
    this.#worker.on("message", receive);
    this.#worker.once("error", reject);
    this.#worker.postMessage(input);
    return promise.finally(() => {
      this.#worker.off("message", receive);
      this.#worker.off("error", reject);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }
}
