// Runs that meet numbers that are not finite: each stops by name, nothing of a version is written, and the run goes on
// to its end when the cause is gone. Injections into single training steps: src/training/onnx/not-finite.test.ts.
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sha256 } from "../../src/files/sha256.ts";
import { train } from "../../src/learning/train.ts";
import { modelFiles } from "../../src/model/checkpoint.ts";
import { openLocalModel } from "../../src/model/model-folder.ts";
import {
  arraysKey,
  attemptPrefix,
  closedKey,
  episodePrefix,
  iterationPrefix,
  policyPrefix,
  runKey,
} from "../../src/run/keys.ts";
import { writePolicy } from "../../src/run/version.ts";
import { decodeSafetensors, encodeSafetensors, type RawTensor } from "../../src/safetensors/format.ts";
import { toBf16 } from "../../src/safetensors/numbers.ts";
import { openStore } from "../../src/store/open-store.ts";
import { openEngine } from "../../src/training/engines.ts";
import { checkFinishedRun } from "./check-store.ts";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

const LEFT = [
  "policies/000001",
  "engine/000001",
  "iterations/000000/metrics.json",
  "iterations/000000/audit.json",
];
let tiny: TinyRun;
beforeAll(async () => {
  tiny = await makeTinyRun({ tasks: 4, iterations: 1, settings: "rollout: { episodes: 4 }\n" });
});
afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

const start = (name: string, ...settings: string[]) =>
  t1(
    "run",
    "start",
    tiny.config,
    "--name",
    name,
    "--local",
    tiny.store,
    ...settings.flatMap(set => ["--set", set]),
  );
const path = (run: string, file: string) => join(tiny.store, "runs", run, file);

it("a learning rate of 1e37 stops the run before a version is there; with another it ends as if nothing had been", async () => {
  const { code, stderr } = await start(
    "r",
    "training.critic.onlyIterations=0",
    "training.actor.learningRate=1e37",
  );
  expect(code, stderr).toBe(2);
  expect(stderr).toMatch(/not finite.* while the policy .*expected a finite number/s);
  for (const file of LEFT) expect(existsSync(path("r", file)), file).toBe(false);
  expect(JSON.parse(readFileSync(path("r", "iterations/000000/not-finite.json"), "utf8"))).toMatchObject({
    iteration: 0,
    from: 0,
    settings: { actor: { learningRate: 1e37 } },
  });
  const record = join(tiny.store, runKey("r"));
  writeFileSync(
    record,
    readFileSync(record, "utf8").replace(/"learningRate": 1e\+37/, '"learningRate": 0.0001'),
  );
  const resumed = await t1("run", "resume", "r", "--local", tiny.store);
  expect(resumed.code, resumed.stderr).toBe(0);
  await checkFinishedRun(await openStore(tiny.store), "r");
}, 240_000);

describe("what an episode recorded, changed with a hash that fits", () => {
  const KEY = arraysKey(attemptPrefix(episodePrefix(iterationPrefix("r", 0), 0), 1));

  it.each<[string, RegExp, (tensor: RawTensor) => void]>([
    ["routes", /receipt does not match|not an expert|route/, ({ bytes }) => bytes.fill(255, 0, 1)],
    [
      "log_probs",
      /receipt does not match|log-prob/,
      ({ bytes, shape }) => view(bytes).setFloat32(4 * (Number(shape[0]) - 1), Number.NaN, true),
    ],
  ])("stops training by name: %s", async (what, named, change) => {
    const folder = join(tiny.folder, what);
    cpSync(tiny.store, folder, { recursive: true });
    for (const file of LEFT) rmSync(join(folder, "runs/r", file), { recursive: true });
    const file = join(folder, KEY);
    const before = readFileSync(file);
    const { tensors, metadata } = decodeSafetensors(Uint8Array.from(before), KEY);
    const name = [...tensors.keys()].find(key => key.includes(what));
    if (name === undefined) throw new Error(`no ${what} among ${[...tensors.keys()]}`);
    change(tensors.get(name) as RawTensor);
    const put = (bytes: Uint8Array) => {
      rmSync(file);
      writeFileSync(file, bytes);
      const closed = join(folder, closedKey(iterationPrefix("r", 0)));
      const list = JSON.parse(readFileSync(closed, "utf8"));
      for (const entry of list.episodes) if (entry.episode === 0) entry.arraysSha256 = sha256(bytes);
      rmSync(closed);
      writeFileSync(closed, JSON.stringify(list));
    };
    put(encodeSafetensors(tensors, metadata));
    const store = await openStore(folder);
    const engine = await openEngine("onnx", { threads: 2 });
    try {
      await expect(train({ run: "r", iteration: 0 }, engine, { store })).rejects.toThrow(named);
      for (const left of LEFT) expect(existsSync(join(folder, "runs/r", left)), left).toBe(false);
      put(before);
      await train({ run: "r", iteration: 0 }, engine, { store });
      const weights = (root: string) => readFileSync(join(root, policyPrefix("r", 1), "model.safetensors"));
      expect(weights(folder).equals(weights(tiny.store))).toBe(true);
    } finally {
      await engine[Symbol.asyncDispose]();
    }
  });

  const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
});

it("a policy whose numbers overflow while it is sampled stops the run; with the right weights it is played", async () => {
  const model = join(tiny.folder, "model/model.safetensors");
  const before = readFileSync(model);
  const { tensors, metadata } = decodeSafetensors(Uint8Array.from(before), "model");
  const norm = tensors.get("model.norm.weight") as RawTensor;
  const huge = new Uint8Array(toBf16(new Float32Array(norm.bytes.length / 2).fill(3e38)).buffer);
  const broken = new Map(tensors).set("model.norm.weight", { ...norm, bytes: huge });
  writeFileSync(model, encodeSafetensors(broken, metadata));
  const { code, stderr } = await start("sampled");
  expect(code, stderr).not.toBe(0);
  expect(stderr).toMatch(/log-prob of token \d+ is NaN/);
  expect(stderr).not.toMatch(/bug of t1/);
  for (const file of LEFT) expect(existsSync(path("sampled", file)), file).toBe(false);
  expect(existsSync(path("sampled", "iterations/000000/closed.json"))).toBe(false);
  writeFileSync(model, before);
  const store = await openStore(tiny.store);
  rmSync(path("sampled", "policies/000000"), { recursive: true });
  const right = await modelFiles(await openLocalModel(join(tiny.folder, "model")));
  await writePolicy(store, { run: "sampled", version: 0 }, right);
  const resumed = await t1("run", "resume", "sampled", "--local", tiny.store);
  expect(resumed.code, resumed.stderr).toBe(0);
  await checkFinishedRun(store, "sampled");
}, 240_000);
