// Entry of the trainer's thread (trainer-thread.ts).
import { parentPort, workerData } from "node:worker_threads";
import { openStore } from "../store/open-store.ts";
import { Sessions } from "../training/onnx/network.ts";
import { type TrainInput, train } from "./train.ts";
import type { FromTrainer, TrainerSettings } from "./trainer-thread.ts";

const { storeUrl, threads }: TrainerSettings = workerData;
const store = await openStore(storeUrl);
const sessions = new Sessions(threads);
const send = (message: FromTrainer): void => parentPort?.postMessage(message);

parentPort?.on("message", async (input: TrainInput) => {
  try {
    await train(input, { store, sessions, onStep: (done, total) => send({ kind: "step", done, total }) });
    send({ kind: "done" });
  } catch (error) {
    const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
    send({ kind: "failed", name, message, stack });
  }
});
