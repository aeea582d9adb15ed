// Thread of the sampler: ONNX Runtime blocks the thread it computes in, so it must not be the one that waits for
// sandboxes. Loads the policy that a request names from the store, once per version.
import { parentPort, workerData } from "node:worker_threads";
import { toErrorMessage } from "../../failure/error-message.ts";
import { readModelFolder } from "../../model/model-folder.ts";
import { openStore } from "../../store/open-store.ts";
import type { PolicyReference } from "../sampler.ts";
import { Engine } from "./engine.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./messages.ts";

const { storeUrl, threads, cacheBytes }: WorkerSettings = workerData;
const store = await openStore(storeUrl);
const cancels = new Map<number, () => void>();
let current: { readonly prefix: string; readonly engine: Promise<Engine> } | undefined;

/**
 * Requests for another version wait until the answers of the last one are out: no episode mixes two. A version that
 * cannot be loaded is loaded anew when it is asked for again; until then the last one stays.
 */
function engineFor({ prefix, version }: PolicyReference): Promise<Engine> {
  if (current?.prefix === prefix) return current.engine;
  const before = current;
  const engine = (async () => {
    const model = await readModelFolder(store, prefix, "language");
    const loaded = await before?.engine.catch(() => undefined);
    if (loaded === undefined || JSON.stringify(loaded.config) !== JSON.stringify(model.config)) {
      await loaded?.[Symbol.asyncDispose]();
      return Engine.open(model, version, { threads, cacheBytes });
    }
    await loaded.useWeights(model, version);
    return loaded;
  })();
  current = { prefix, engine };
  engine.catch(() => {
    if (current?.engine === engine) current = before;
  });
  return engine;
}

/** ONNX Runtime takes the whole process down when its thread ends in the middle of a computation. */
async function close(): Promise<void> {
  const engine = await current?.engine.catch(() => undefined);
  await engine?.[Symbol.asyncDispose]();
  parentPort?.close();
}

async function handle(message: Exclude<ToWorker, { kind: "close" }>): Promise<FromWorker | undefined> {
  const { id } = message;
  if (message.kind === "cancel") {
    cancels.get(id)?.();
    return undefined;
  }
  try {
    const engine = await engineFor(message.request.policy);
    const { generation, cancel } = engine.submit(message.request);
    cancels.set(id, cancel);
    return { kind: "generated", id, generation: await generation };
  } catch (error) {
    return { kind: "failed", id, error: toErrorMessage(error) };
  } finally {
    cancels.delete(id);
  }
}

parentPort?.on("message", async (message: ToWorker) => {
  if (message.kind === "close") return close();
  const answer = await handle(message);
  if (answer !== undefined) parentPort?.postMessage(answer);
});
