// Entry of the trainer's thread (trainer-thread.ts).
import { parentPort, workerData } from "node:worker_threads";
import { toErrorMessage } from "../failure/error-message.ts";
import { openStore } from "../store/open-store.ts";
import { Sessions } from "../training/onnx/network.ts";
import { type TrainInput, train } from "./train.ts";
import type { FromTrainer, TrainerSettings } from "./trainer-thread.ts";

const { storeUrl, threads }: TrainerSettings = workerData;
const store = await openStore(storeUrl);
const sessions = new Sessions({ threads });
const send = (message: FromTrainer): void => parentPort?.postMessage(message);

parentPort?.on("message", async (input: TrainInput) => {
  try {
    await train(input, { store, sessions, onStep: (done, total) => send({ kind: "step", done, total }) });
    send({ kind: "done" });
  } catch (error) {
    send({ kind: "failed", error: toErrorMessage(error) });
  }
});
