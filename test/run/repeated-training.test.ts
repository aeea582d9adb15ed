// A training whose host is lost between any two writes, and which comes to other last bits when it is repeated, as on a
// GPU: the iteration ends with one whole version, all of one training.
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { train } from "../../src/learning/train.ts";
import { iterationPrefix, metricsKey, policyPrefix, runKey } from "../../src/run/keys.ts";
import { hasPolicy, openEngineState, verifyVersion } from "../../src/run/version.ts";
import { decodeSafetensors } from "../../src/safetensors/format.ts";
import { tensorArray, toBf16 } from "../../src/safetensors/numbers.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Engine } from "../../src/training/engine.ts";
import { openEngine } from "../../src/training/engines.ts";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

const VERSION = { run: "r", version: 1 };
const RATE = /"learningRate": ([\d.e-]+)/g;
let tiny: TinyRun;
let engine: Engine;

beforeAll(async () => {
  tiny = await makeTinyRun({ tasks: 4, iterations: 1, settings: "rollout:\n  episodes: 4\n" });
  const { code, stderr } = await t1("run", "start", tiny.config, "--name", "r", "--local", tiny.store);
  expect(code, stderr).toBe(0);
  for (const name of ["policies/000001", "engine/000001"])
    rmSync(join(tiny.store, "runs/r", name), { recursive: true });
  for (const name of ["metrics.json", "audit.json"]) rmSync(join(tiny.store, iterationPrefix("r", 0), name));
  // The tiny run trains its critic alone in the first iteration; here the policy is to change.
  const record = join(tiny.store, runKey("r"));
  writeFileSync(record, readFileSync(record, "utf8").replace('"onlyIterations": 1', '"onlyIterations": 0'));
  engine = await openEngine("onnx", { threads: 2 });
}, 240_000);

afterAll(async () => {
  await engine[Symbol.asyncDispose]();
  rmSync(tiny.folder, { recursive: true, force: true });
});

it("can be repeated whatever was written before", { timeout: 600_000 }, async () => {
  let lostAt = 0;
  for (let isDone = false; !isDone; lostAt++) {
    const folder = join(tiny.folder, "lost");
    cpSync(tiny.store, folder, { recursive: true });
    const store = await openStore(folder);
    let writes = 0;
    const losing = countingWrites(store, () => {
      if (writes++ === lostAt) throw new Error("host lost");
    });
    const ended = await train({ run: "r", iteration: 0 }, engine, { store: losing }).then(
      () => "done",
      error => error.message,
    );
    isDone = ended === "done";
    if (!isDone) expect(ended).toBe("host lost");
    if (await hasPolicy(store, VERSION)) await verifyVersion(store, VERSION);
    const stateBefore = await stateManifest(folder);
    useOtherLastBits(folder);
    await train({ run: "r", iteration: 0 }, engine, { store });
    if (stateBefore !== undefined) expect(await stateManifest(folder)).toBe(stateBefore);
    await verifyVersion(store, VERSION);
    await expectOneTraining(store, folder);
    rmSync(folder, { recursive: true });
  }
  // Each file of state and policy, their manifests, metrics and audit.
  expect(lostAt).toBeGreaterThan(10);
});

/** The store as a host sees it that is lost at a write: nothing it does afterwards reaches the storage. */
function countingWrites(store: ObjectStore, onWrite: () => void): ObjectStore {
  let isLost = false;
  const write = <T>(work: () => Promise<T>): Promise<T> => {
    try {
      if (isLost) throw new Error("host lost");
      onWrite();
    } catch (error) {
      isLost = true;
      return Promise.reject(error);
    }
    return work();
  };
  return {
    url: store.url,
    get: key => store.get(key),
    head: key => store.head(key),
    put: (key, body, condition) => write(() => store.put(key, body, condition)),
    delete: key => write(() => store.delete(key)),
    stream: key => store.stream(key),
    list: prefix => store.list(prefix),
    folders: prefix => store.folders(prefix),
  };
}

/** Slightly other learning rates: what another order of additions on a GPU does to the weights, only larger. */
function useOtherLastBits(folder: string): void {
  const file = join(folder, runKey("r"));
  const text = readFileSync(file, "utf8");
  writeFileSync(
    file,
    text.replace(RATE, (_, rate) => `"learningRate": ${Number(rate) * 1.01}`),
  );
}

async function stateManifest(folder: string): Promise<string | undefined> {
  const state = await openEngineState(await openStore(folder), VERSION);
  return state && readFileSync(join(folder, state.where, "manifest.json"), "utf8");
}

/** Metrics are those of the training whose weights were kept, and the policy is those weights, rounded. */
async function expectOneTraining(store: ObjectStore, folder: string): Promise<void> {
  const read = (key: string): Buffer => readFileSync(join(folder, key));
  const state = await openEngineState(store, VERSION);
  if (state === undefined) throw new Error("no state");
  const { metrics } = JSON.parse(Buffer.from(await state.read("results.json")).toString());
  expect(JSON.parse(read(metricsKey(iterationPrefix("r", 0))).toString())).toEqual(metrics);
  const actor = decodeSafetensors(await state.read("actor.safetensors"), "actor");
  const policy = decodeSafetensors(read(`${policyPrefix("r", 1)}model.safetensors`), "policy");
  for (const [name, { bytes }] of policy.tensors) {
    const trained = tensorArray(actor, `parameter.${name}`, "F32").data;
    expect(Buffer.compare(bytes, new Uint8Array(toBf16(trained).buffer)), name).toBe(0);
  }
}
