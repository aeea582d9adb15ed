// Opens a driver's sampler: a client of the server that all drivers share, or a sampler in this process.
import { readModelConfig } from "../../src/model/checkpoint.ts";
import { openStoredModel } from "../../src/model/model-folder.ts";
import { OnnxSampler } from "../../src/sampler/onnx/onnx-sampler.ts";
import type { PolicyReference, Sampler } from "../../src/sampler/sampler.ts";
import { SglangSampler } from "../../src/sampler/sglang/sglang-sampler.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

/** Memory for parked caches of waiting episodes. */
const CACHE_BYTES = 1 << 29;

export interface SamplerChoice {
  /** URL of a server in SGLang's format that loads policies by their keys in the store. */
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** Threads of a sampler in this process. */
  readonly threads: number;
}

/** @throws InputError when the policy is not in the store */
export async function openSampler(
  store: ObjectStore,
  { prefix }: PolicyReference,
  { url, key, threads }: SamplerChoice,
): Promise<Sampler> {
  if (url === undefined) return new OnnxSampler({ storeUrl: store.url, threads, cacheBytes: CACHE_BYTES });
  const model = await readModelConfig(await openStoredModel(store, prefix));
  return new SglangSampler({ url, model, ...(key !== undefined && { apiKey: key }) });
}
