// A store with two policies of one small model, for tests of samplers.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encodeModelFiles, readModel } from "../../src/model/checkpoint.ts";
import type { ModelConfig } from "../../src/model/config.ts";
import { newConfigFile } from "../../src/model/config-file.ts";
import { openLocalModel } from "../../src/model/model-folder.ts";
import { randomParameters } from "../../src/model/parameters.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { policyPrefix } from "../../src/run/keys.ts";
import type { PolicyReference } from "../../src/sampler/sampler.ts";
import { openFileStore } from "../../src/store/file-store.ts";
import { writeFolder } from "../../src/store/manifest.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

export interface StoredPolicies {
  readonly store: ObjectStore;
  readonly model: ModelConfig;
  readonly policies: readonly [PolicyReference, PolicyReference];
  remove(): Promise<void>;
}

/** A policy with random weights. @param change of every weight */
export async function storePolicy(
  store: ObjectStore,
  config: ModelConfig,
  policy: PolicyReference,
  change: (weight: number) => number = weight => weight,
): Promise<void> {
  const parameters = randomParameters(config, new RandomStream(deriveSeed(policy.prefix)));
  for (const { data } of parameters.values()) data.set(data.map(change));
  await writeFolder(
    store,
    policy.prefix,
    encodeModelFiles(parameters, newConfigFile(config, "float32", {}), "float32"),
  );
}

/** @param fixture a model in test/fixtures; the default has layers with and without experts */
export async function storePolicies(fixture = "qwen3moe/sparse_step2"): Promise<StoredPolicies> {
  const from = join(import.meta.dirname, "../fixtures", fixture);
  const folder = await mkdtemp(join(tmpdir(), "t1-policies-"));
  const store = await openFileStore(folder);
  const first = await readModel(await openLocalModel(from), "language");
  const { config } = first;
  const second = {
    config,
    parameters: randomParameters(config, new RandomStream(deriveSeed("second policy"))),
  };
  const policies = [first, second].map((model, index) => ({
    model,
    policy: { version: index + 1, prefix: policyPrefix("demo", index + 1) },
  }));
  for (const { model, policy } of policies)
    await writeFolder(
      store,
      policy.prefix,
      encodeModelFiles(model.parameters, newConfigFile(config, "float32", {}), "float32"),
    );
  const [one, two] = policies.map(({ policy }) => policy);
  if (one === undefined || two === undefined) throw new Error("two policies");
  return { store, model: config, policies: [one, two], remove: () => rm(folder, { recursive: true }) };
}
