// Checkpoints of runs in transformers, which most people load them with. T1_PYTHON names a Python that has torch,
// transformers 5 and safetensors.
import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { readModel } from "../../src/model/checkpoint.ts";
import { openLocalModel } from "../../src/model/model-folder.ts";
import { buildPackedGraph, packedFeeds } from "../../src/model/packed-graph.ts";
import { packSequences } from "../../src/model/packing.ts";
import { policyPrefix } from "../../src/run/keys.ts";
import { type Feeds, Session } from "../../src/tensor/session.ts";
import { makeTinyRun, t1 } from "../run/tiny-run.ts";

const python = process.env.T1_PYTHON;
const why = python === undefined ? " (skipped: T1_PYTHON names no Python with transformers)" : "";
const TOKENS = [1, 40, 77, 140, 5, 299, 12, 63];

describe.skipIf(python === undefined)(`the checkpoint of a run in transformers${why}`, () => {
  it.each([
    { of: "a dense model that transformers made", weights: "qwen3/saved", loadedAs: "Qwen3ForCausalLM" },
    { of: "a model that t1 made", weights: undefined, loadedAs: "Qwen3MoeForCausalLM" },
  ])("is $of: it has the same logits, and generate() stops at its end", async ({ weights, loadedAs }) => {
    const tiny = await makeTinyRun({ iterations: 1, weights });
    onTestFinished(() => rmSync(tiny.folder, { recursive: true, force: true }));
    const config = join(tiny.folder, "sft.yaml");
    const training = "training: { iterations: 1, passes: 3, episodesPerStep: 2, warmupSteps: 1 }";
    const agent = "agent: { contextTokens: 180, answerTokens: 40, observationTokens: 32 }";
    writeFileSync(
      config,
      `algorithm: sft\npolicy: model\ntasks: { pool: pool }\n${agent}\nrollout: { episodes: 6 }\n${training}\n`,
    );
    const { code, stderr } = await t1("run", "start", config, "--name", "r", "--local", tiny.store);
    expect(code, stderr).toBe(0);

    const folder = join(tiny.store, policyPrefix("r", 1));
    const script = join(import.meta.dirname, "load_checkpoint.py");
    const { stdout } = await promisify(execFile)(python ?? "", [script, folder, JSON.stringify(TOKENS)], {
      maxBuffer: 1 << 26,
    });
    const theirs = JSON.parse(stdout);
    expect([theirs.class, theirs.end]).toEqual([loadedAs, "<|im_end|>"]);
    expect([theirs.generated.length, theirs.generated.at(-1)]).toEqual([4, 2]);
    const ours = await logitsOf(folder);
    const gaps = theirs.logits.flat().map((value: number, at: number) => Math.abs(value - ours[at]));
    expect(ours.length).toBe(gaps.length);
    expect(Math.max(...gaps)).toBeLessThan(2e-5);
  });
});

/** [N, V] of our training graph. */
async function logitsOf(folder: string): Promise<Float32Array> {
  const { config, parameters } = await readModel(await openLocalModel(folder), "language");
  const { graph, head } = buildPackedGraph(config, { head: "language", replay: false });
  graph.output("logits", head);
  const everyRow = Int32Array.from(TOKENS, (_, row) => row);
  const feeds: Record<string, Feeds[string]> = {
    ...packedFeeds(packSequences([Int32Array.from(TOKENS)]), everyRow),
  };
  for (const [name, parameter] of parameters) feeds[name] = parameter;
  await using session = await Session.open(graph, { threads: 1 });
  return (await session.run(feeds)).f32("logits").data;
}
