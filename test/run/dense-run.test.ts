// A dense Qwen3 that transformers made and saved, through whole runs: sampled, audited and trained.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readWhole, toSource } from "../../src/files/content.ts";
import { readMetrics } from "../../src/learning/metrics.ts";
import { CONFIG_FILE, encodeModelFiles, readModel } from "../../src/model/checkpoint.ts";
import { openLocalModel } from "../../src/model/model-folder.ts";
import { criticFromActor } from "../../src/model/parameters.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { iterationPrefix, policyPrefix } from "../../src/run/keys.ts";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "./check-store.ts";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

const SAVED = join(import.meta.dirname, "../fixtures/qwen3/saved");

describe("a run of a dense model", () => {
  let tiny: TinyRun;
  beforeAll(async () => {
    tiny = await makeTinyRun({ iterations: 1, weights: "qwen3/saved" });
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

  it("trains by PPO; the gap is that of the model as it is, since there are no routes", async () => {
    // Random answers earn nothing, and a fresh critic expects nothing: only one that errs gives the policy a gradient.
    await writeCritic(join(tiny.folder, "critic"));
    const words = ["run", "start", tiny.config, "--name", "dense", "--local", tiny.store];
    const settings = ["--set", "training.critic.from=critic", "--set", "training.critic.onlyIterations=0"];
    const { code, stderr } = await t1(...words, ...settings);
    expect(code, stderr).toBe(0);
    const store = await openStore(tiny.store);
    expect(await checkFinishedRun(store, "dense")).toBe(0);
    const { numbers } = await readMetrics(store, iterationPrefix("dense", 0));
    expect(numbers["mismatch.replayed.mean"]).toBeUndefined();
    expect(numbers["mismatch.free.max"]).toBeLessThan(1e-5);
    expect(numbers["policy.gradientNorm"]).toBeGreaterThan(0);
  });

  it("trains on demonstrations, without a loss that balances experts", async () => {
    const config = join(tiny.folder, "sft.yaml");
    const training = "training: { iterations: 1, passes: 3, episodesPerStep: 2, warmupSteps: 1 }";
    writeFileSync(
      config,
      `algorithm: sft\npolicy: model\ntasks: { pool: pool }\nagent: { contextTokens: 180, answerTokens: 40, observationTokens: 32 }\nrollout: { episodes: 6 }\n${training}\nthreads: 2\n`,
    );
    const { code, stderr } = await t1("run", "start", config, "--name", "taught", "--local", tiny.store);
    expect(code, stderr).toBe(0);
    const { numbers } = await readMetrics(await openStore(tiny.store), iterationPrefix("taught", 0));
    // Nine steps from about ln 320, the entropy of a choice among all tokens.
    expect(numbers["sft.steps"]).toBe(9);
    expect(numbers["sft.loss"]).toBeLessThan(6);
    expect(numbers["sft.lastLoss"]).toBeLessThan(numbers["sft.loss"] ?? 0);
  });

  it("keeps what its authors wrote in config.json and generation_config.json in every version", () => {
    const read = (folder: string, file: string): string => readFileSync(join(folder, file), "utf8");
    for (const run of ["dense", "taught"]) {
      for (const version of [0, 1]) {
        const folder = join(tiny.store, policyPrefix(run, version));
        const type = version === 0 ? "float32" : "bfloat16";
        expect(read(folder, "config.json").trimEnd()).toBe(
          read(SAVED, "config.json").replace('"dtype": "float32"', `"dtype": "${type}"`).trimEnd(),
        );
        expect(read(folder, "generation_config.json")).toBe(read(SAVED, "generation_config.json"));
      }
    }
  });

  it("is reported as dense", async () => {
    const out = join(tiny.folder, "report.html");
    const { code, stderr } = await t1("report", "dense", "--local", tiny.store, "--out", out);
    expect(code, stderr).toBe(0);
    expect(readFileSync(out, "utf8")).toContain("2 layers, dense");
  });
});

/** The saved model as a critic whose values are random. */
async function writeCritic(folder: string): Promise<void> {
  const { config, parameters } = await readModel(await openLocalModel(SAVED), "language");
  const critic = criticFromActor(config, parameters);
  const random = new RandomStream(deriveSeed("dense critic"));
  const head = critic.get("value_head.weight")?.data ?? new Float32Array();
  head.forEach((_, place) => {
    head[place] = random.normal();
  });
  mkdirSync(folder);
  const configFile = readFileSync(join(SAVED, CONFIG_FILE));
  for (const { path, body } of encodeModelFiles(critic, configFile, "float32"))
    writeFileSync(join(folder, path), await readWhole(toSource(body)));
}
