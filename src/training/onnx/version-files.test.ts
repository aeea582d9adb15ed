// The state of a trained policy: as it was when it is read again, and a policy of it for which nothing else is read.
import { join } from "node:path";
import { expect, test } from "vitest";
import { filesInMemory } from "../../files/content.ts";
import { readModel } from "../../model/checkpoint.ts";
import { openLocalModel } from "../../model/model-folder.ts";
import type { NetworkState } from "./network.ts";
import { actorFiles, policyFiles, readActor } from "./version-files.ts";

const FIXTURE = join(import.meta.dirname, "../../../test/fixtures/qwen3moe/sparse_step2");

/** The fixture's policy without its weights, and a state in which every number is one that no other array has. */
async function trained() {
  const model = await openLocalModel(FIXTURE);
  const { config, parameters: before } = await readModel(model, "language");
  const filled = (length: number, first: number) =>
    Float32Array.from({ length }, (_, at) => first + at / 128);
  const parameters = new Map(
    [...before].map(([name, { shape, data }], at) => [name, { shape, data: filled(data.length, 4 * at) }]),
  );
  const moments = new Map(
    [...parameters].map(
      (
        [
          name,
          {
            data: { length },
          },
        ],
        at,
      ) => [name, { first: filled(length, 4 * at + 1), second: filled(length, 4 * at + 2) }],
    ),
  );
  const state: NetworkState = { config, parameters, moments, step: 7 };
  const files = filesInMemory("state/", actorFiles(state));
  const policy = filesInMemory("before/", [{ path: "config.json", body: await model.read("config.json") }]);
  return { state, files, policy };
}

test("a state is read as it was written, in the same order, without the policy's weights", async () => {
  const { state, files, policy } = await trained();
  const read = await readActor({ version: 1, policy, state: files, critic: undefined });
  expect(read).toEqual(state);
  expect([...read.parameters.keys()]).toEqual([...state.parameters.keys()]);
});

test("the policy of a state has its parameters, rounded to bfloat16", async () => {
  const { state, files, policy } = await trained();
  const made = filesInMemory("made/", await Array.fromAsync(policyFiles(files, policy)));
  const { parameters } = await readModel(made, "language");
  expect([...parameters.keys()]).toEqual([...state.parameters.keys()]);
  // Eight bits of a number stay.
  for (const [name, { data }] of state.parameters)
    for (const [at, value] of (parameters.get(name)?.data ?? []).entries())
      expect(Math.abs(value - data[at])).toBeLessThanOrEqual(data[at] / 256);
});
