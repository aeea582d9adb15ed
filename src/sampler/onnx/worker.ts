// Thread of the sampler: ONNX Runtime blocks the thread it computes in, so it must not be the one that waits for
// sandboxes. Loads the policy that a request names from the store, once per version.
import { parentPort, workerData } from "node:worker_threads";
import { toErrorMessage } from "../../failure/error-message.ts";
import { readModel } from "../../model/checkpoint.ts";
import { openStoredModel } from "../../model/model-folder.ts";
import { openStore } from "../../store/open-store.ts";
import { gaveUp } from "../gave-up.ts";
import type { GenerateRequest, PolicyReference } from "../sampler.ts";
import { Engine } from "./engine.ts";
import type { FromWorker, ToWorker, WorkerSettings } from "./messages.ts";

const { storeUrl, threads, cacheBytes }: WorkerSettings = workerData;
const store = await openStore(storeUrl);
/** Signals of the requests that have no answer yet. */
const leaving = new Map<number, AbortController>();
/** The engine, and the policy that it answers with. */
let loaded: { readonly prefix: string; readonly engine: Engine } | undefined;
/** Requests get their policy loaded one after the other, so that none is loaded while another is. */
let turn: Promise<unknown> = Promise.resolve();

function submit(
  request: Omit<GenerateRequest, "signal">,
  signal: AbortSignal,
): Promise<ReturnType<Engine["submit"]>> {
  const submitted = turn.then(async () => {
    // Loading a policy for a caller that has left would make the next one wait.
    if (signal.aborted) throw gaveUp();
    const engine = await engineFor(request.policy);
    if (signal.aborted) throw gaveUp();
    return engine.submit(request);
  });
  turn = submitted.catch(() => undefined);
  return submitted;
}

/**
 * Requests for another version wait until the answers of the last one are out: no episode mixes two. A version that
 * cannot be loaded is loaded anew when it is asked for again; until then the last one stays.
 */
async function engineFor({ prefix, version }: PolicyReference): Promise<Engine> {
  if (loaded?.prefix === prefix) return loaded.engine;
  const model = await readModel(await openStoredModel(store, prefix), "language");
  if (loaded !== undefined && JSON.stringify(loaded.engine.config) === JSON.stringify(model.config)) {
    await loaded.engine.useWeights(model, version);
    loaded = { prefix, engine: loaded.engine };
    return loaded.engine;
  }
  // Open the new engine before the last one goes: a model of another shape may be one that cannot be compiled.
  const engine = await Engine.open(model, version, { threads, cacheBytes });
  const last = loaded?.engine;
  await last?.answered();
  loaded = { prefix, engine };
  await last?.[Symbol.asyncDispose]();
  return engine;
}

/** ONNX Runtime takes the whole process down when its thread ends in the middle of a computation. */
async function close(): Promise<void> {
  for (const controller of leaving.values()) controller.abort();
  await turn;
  await loaded?.engine[Symbol.asyncDispose]();
  parentPort?.close();
}

async function generate(id: number, request: Omit<GenerateRequest, "signal">): Promise<FromWorker> {
  const controller = new AbortController();
  leaving.set(id, controller);
  try {
    const { generation, cancel } = await submit(request, controller.signal);
    controller.signal.addEventListener("abort", cancel);
    if (controller.signal.aborted) cancel();
    return { kind: "generated", id, generation: await generation };
  } catch (error) {
    return { kind: "failed", id, error: toErrorMessage(error) };
  } finally {
    leaving.delete(id);
  }
}

parentPort?.on("message", async (message: ToWorker) => {
  if (message.kind === "close") return close();
  if (message.kind === "cancel") return leaving.get(message.id)?.abort();
  parentPort?.postMessage(await generate(message.id, message.request));
});
