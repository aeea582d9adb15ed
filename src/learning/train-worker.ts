// Entry of the trainer's thread (trainer-thread.ts).
import { parentPort, workerData } from "node:worker_threads";
import { toErrorMessage } from "../failure/error-message.ts";
import { readRun } from "../run/run-record.ts";
import { openStore } from "../store/open-store.ts";
import type { Engine } from "../training/engine.ts";
import { openEngine } from "../training/engines.ts";
import { type TrainInput, train } from "./train.ts";
import type { FromTrainer, TrainerSettings } from "./trainer-thread.ts";

const { storeUrl, threads }: TrainerSettings = workerData;
const store = await openStore(storeUrl);
let engine: Engine | undefined;
const send = (message: FromTrainer): void => parentPort?.postMessage(message);

parentPort?.on("message", async (input: TrainInput) => {
  try {
    engine ??= await openEngine((await readRun(store, input.run)).config.engine, { threads });
    await train(input, engine, { store, onStep: (done, total) => send({ kind: "step", done, total }) });
    send({ kind: "done" });
  } catch (error) {
    send({ kind: "failed", error: toErrorMessage(error) });
  }
});
