// Who samples for a driver: a server that all drivers share, or this process.

import { InputError } from "../../src/failure/errors.ts";
import { CONFIG_FILE } from "../../src/model/checkpoint.ts";
import { parseModelConfig } from "../../src/model/config.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import type { PolicyReference, Sampler } from "../../src/sampler/sampler.ts";
import { SglangSampler } from "../../src/sampler/sglang/sglang-sampler.ts";
import { readFolderFile, readManifest } from "../../src/store/manifest.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

/** Parked caches of waiting episodes. */
const CACHE_BYTES = 1 << 29;

export interface SamplerChoice {
  /** Of a server in SGLang's format that loads policies by their keys in the store. */
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** Of a sampler in this process. */
  readonly threads: number;
}

/** @throws InputError when the policy is not in the store */
export async function openSampler(
  store: ObjectStore,
  { prefix }: PolicyReference,
  { url, key, threads }: SamplerChoice,
): Promise<Sampler> {
  if (url === undefined) return new OnnxSampler({ storeUrl: store.url, threads, cacheBytes: CACHE_BYTES });
  const manifest = await readManifest(store, prefix);
  if (manifest === undefined)
    throw new InputError({
      what: "no such policy",
      where: `${store.url}/${prefix}`,
      expected: "a published version",
    });
  const file = await readFolderFile(store, prefix, manifest, CONFIG_FILE);
  const model = parseModelConfig(JSON.parse(Buffer.from(file).toString("utf8")), `${prefix}${CONFIG_FILE}`);
  return new SglangSampler({ url, model, ...(key !== undefined && { apiKey: key }) });
}
