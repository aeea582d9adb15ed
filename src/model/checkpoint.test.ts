import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { filesInMemory, type NamedContent, readWhole, toSource } from "../files/content.ts";
import { encodeSafetensors } from "../safetensors/format.ts";
import { rawTensor } from "../safetensors/numbers.ts";
import { encodeModelFiles, modelFiles, readModel, travellingFiles } from "./checkpoint.ts";
import { openLocalModel } from "./model-folder.ts";

const FIXTURE = join(import.meta.dirname, "../../test/fixtures/qwen3moe/sparse_step2");

async function bytesOf({ body }: NamedContent): Promise<Uint8Array> {
  return readWhole(toSource(body));
}

/** The fixture in two shards, with what a download may hold beside them. */
async function shardedFolder(): Promise<string> {
  const { parameters } = await readModel(await openLocalModel(FIXTURE), "language");
  const folder = mkdtempSync(join(tmpdir(), "t1-sharded-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = await (await openLocalModel(FIXTURE)).read("config.json");
  const map: Record<string, string> = {};
  for (const shard of [0, 1]) {
    const file = `model-0000${shard + 1}-of-00002.safetensors`;
    const tensors = [...parameters]
      .filter((_, index) => index % 2 === shard)
      .map(([name, { shape, data }]) => [name, rawTensor("F32", shape, data)] as const);
    for (const [name] of tensors) map[name] = file;
    writeFileSync(join(folder, file), encodeSafetensors(tensors));
  }
  writeFileSync(join(folder, "config.json"), config);
  writeFileSync(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map: map }));
  for (const name of ["adapter_model.safetensors", "trainer_state.json", "README.md", "tokenizer.json"])
    writeFileSync(join(folder, name), `{ "of": "${name}" }`);
  writeFileSync(join(folder, "generation_config.json"), '{ "eos_token_id":7, "top_p": 1.0 }');
  return folder;
}

test("a sharded model is taken with its shards, and leaves none of them to its successor", async () => {
  const files = await openLocalModel(await shardedFolder());
  const first = filesInMemory("first/", await modelFiles(files));
  expect([...first.names].sort()).toEqual([
    "config.json",
    "generation_config.json",
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
    "tokenizer.json",
  ]);
  const { parameters } = await readModel(first, "language");
  const doubled = new Map(
    [...parameters].map(([name, { shape, data }]) => [name, { shape, data: data.map(value => 2 * value) }]),
  );
  const next = filesInMemory("next/", [
    ...encodeModelFiles(doubled, await first.read("config.json"), "float32"),
    ...travellingFiles(first),
  ]);
  expect([...next.names].sort()).toEqual([
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
  ]);
  expect((await readModel(next, "language")).parameters).toEqual(doubled);
});

test("what travels is the same byte for byte", async () => {
  const files = await openLocalModel(await shardedFolder());
  for (const content of travellingFiles(files))
    expect(await bytesOf(content)).toEqual(await files.read(content.path));
});

test("one file beside an index is read alone, as transformers does", async () => {
  const folder = await shardedFolder();
  const whole = await (await openLocalModel(FIXTURE)).read("model.safetensors");
  writeFileSync(join(folder, "model.safetensors"), whole);
  const names = (await modelFiles(await openLocalModel(folder))).map(({ path }) => path);
  expect(names.filter(name => name.startsWith("model"))).toEqual(["model.safetensors"]);
});
