// The model architectures that can be sampled and trained, by `model_type` of config.json. A new one is a file beside
// this one and a line in the table.
import type { Tensor } from "../../tensor/graph.ts";
import type { BlockParts } from "../blocks.ts";
import type { ModelConfig } from "../config.ts";
import type { TransformerOutput } from "../transformer.ts";
import { qwen3 } from "./qwen3.ts";
import { qwen3Moe } from "./qwen3-moe.ts";

export interface Architecture {
  /** Reads config.json. @throws InputError naming `file` and the key for a setting that would change the maths */
  readonly parse: (json: unknown, file: string) => Omit<ModelConfig, "architecture">;
  /** The keys of config.json for a model that is made here. */
  readonly write: (config: ModelConfig) => Record<string, unknown>;
  /** Names and shapes of one layer's parameters, in checkpoint order. */
  readonly parameters: (config: ModelConfig, layer: number) => readonly NamedShape[];
  /** All layers as graph code: from embedded tokens [N, D] to the input of the last norm [N, D]. */
  readonly layers: (x: Tensor, parts: BlockParts) => TransformerOutput;
}

export type NamedShape = readonly [name: string, shape: readonly number[]];

export const ARCHITECTURES = {
  qwen3,
  qwen3_moe: qwen3Moe,
} as const satisfies Record<string, Architecture>;

export type ArchitectureName = keyof typeof ARCHITECTURES;
