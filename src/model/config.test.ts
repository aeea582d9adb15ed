import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type ModelConfig, newModelConfig, parseModelConfig } from "./config.ts";
import { newConfigFile, withWeightType } from "./config-file.ts";
import { parameterShapes } from "./parameters.ts";

const read = (path: string): Buffer =>
  readFileSync(`${import.meta.dirname}/../../test/fixtures/${path}/config.json`);
const json = (path: string): Record<string, unknown> => JSON.parse(read(path).toString("utf8"));
const DENSE = json("qwen3/base");
const SPARSE = json("qwen3moe/sparse_step2");

describe("config.json", () => {
  it("of a dense model, as transformers 5 writes it, is understood; layers without experts have none", () => {
    expect(parseModelConfig(json("qwen3/saved"), "config.json")).toEqual({
      ...{ architecture: "qwen3", vocabSize: 320, hiddenSize: 32, layerCount: 2, headCount: 4 },
      ...{ keyValueHeadCount: 2, headDim: 16, intermediateSize: 56, ropeTheta: 1e6, rmsNormEpsilon: 1e-6 },
      ...{ maxPositions: 256, tiedEmbeddings: true },
    } satisfies ModelConfig);
    expect(parseModelConfig(SPARSE, "config.json").experts?.layers).toEqual([1, 3]);
    expect(parseModelConfig({ ...SPARSE, mlp_only_layers: [0, 1, 2, 3] }, "x").experts).toBeUndefined();
  });

  it("is understood as transformers 4.51 wrote it for Qwen3-0.6B", () => {
    const published = {
      ...{ architectures: ["Qwen3ForCausalLM"], attention_bias: false, attention_dropout: 0.0 },
      ...{ bos_token_id: 151643, eos_token_id: 151645, head_dim: 128, hidden_act: "silu", hidden_size: 1024 },
      ...{ initializer_range: 0.02, intermediate_size: 3072, max_position_embeddings: 40960 },
      ...{ max_window_layers: 28, model_type: "qwen3", num_attention_heads: 16, num_hidden_layers: 28 },
      ...{ num_key_value_heads: 8, rms_norm_eps: 1e-6, rope_scaling: null, rope_theta: 1000000 },
      ...{ sliding_window: null, tie_word_embeddings: true, torch_dtype: "bfloat16" },
      ...{ transformers_version: "4.51.0", use_cache: true, use_sliding_window: false, vocab_size: 151936 },
    };
    const config = parseModelConfig(published, "config.json");
    // 596 million parameters, as its model card says (0.6B; 0.44B without the embedding).
    const sizes = [...parameterShapes(config, "language")].map(([name, shape]) => ({
      name,
      size: shape.reduce((product, dim) => product * dim, 1),
    }));
    const total = sizes.reduce((sum, { size }) => sum + size, 0);
    const embedding = sizes.find(({ name }) => name.includes("embed"))?.size ?? 0;
    expect([Math.round(total / 1e6), Math.round((total - embedding) / 1e7) / 100]).toEqual([596, 0.44]);
  });

  it.each(["qwen3/base", "qwen3/tied", "qwen3moe/sparse_step2", "qwen3moe/nonorm"])(
    "of a model that is made here says the same model (%s)",
    path => {
      const config = parseModelConfig(json(path), path);
      expect(parseModelConfig(newModelConfig(config), path)).toEqual(config);
    },
  );

  it.each<[string, Record<string, unknown>, RegExp]>([
    [
      "another kind of model",
      { ...DENSE, model_type: "llama" },
      /model_type: expected qwen3 or qwen3_moe, got "llama"/,
    ],
    ["no kind", { ...DENSE, model_type: undefined }, /model_type: expected qwen3/],
    ["a name that every object has", { ...DENSE, model_type: "constructor" }, /got "constructor"/],
    [
      "another head",
      { ...DENSE, architectures: ["Qwen3ForSequenceClassification"] },
      /architectures\.0.*Qwen3ForSeq/,
    ],
    [
      "scaled positions",
      { ...DENSE, rope_scaling: { rope_type: "yarn", factor: 4 } },
      /rope_scaling\.rope_type.*"yarn"/,
    ],
    [
      "scaled positions of transformers 5",
      { ...DENSE, rope_parameters: { rope_theta: 1e6, rope_type: "linear" } },
      /rope_parameters\.rope_type.*"linear"/,
    ],
    ["two bases", { ...DENSE, rope_theta: 1e4 }, /disagree.*rope_theta 10000 and rope_parameters/],
    [
      "no base",
      { ...DENSE, rope_theta: undefined, rope_parameters: undefined },
      /rope_theta or rope_parameters/,
    ],
    ["biases", { ...DENSE, attention_bias: true }, /attention_bias.*got true/],
    ["dropout", { ...DENSE, attention_dropout: 0.1 }, /attention_dropout.*got 0\.1/],
    ["another activation", { ...DENSE, hidden_act: "gelu" }, /hidden_act.*"gelu"/],
    ["a window", { ...DENSE, use_sliding_window: true }, /use_sliding_window/],
    [
      "a window in one layer",
      { ...DENSE, layer_types: ["full_attention", "sliding_attention"] },
      /layer_types\.1/,
    ],
    ["quantised weights", { ...DENSE, quantization_config: { bits: 4 } }, /quantization_config/],
    ["code of its own", { ...DENSE, auto_map: { AutoModel: "x.Y" } }, /auto_map/],
    ["no heads", { ...DENSE, num_attention_heads: 0 }, /num_attention_heads/],
    [
      "key heads that do not divide",
      { ...DENSE, num_key_value_heads: 3 },
      /num_key_value_heads.*which is 4, got 3/,
    ],
    ["an odd head", { ...DENSE, head_dim: 15 }, /head_dim.*even number, got 15/],
    ["no width of a head", { ...DENSE, head_dim: undefined }, /head_dim.*missing/],
    [
      "a width that heads do not divide",
      { ...SPARSE, head_dim: undefined, hidden_size: 34 },
      /hidden_size: expected a multiple of num_attention_heads, which is 4, got 34/,
    ],
    [
      "more experts per token than experts",
      { ...SPARSE, num_experts_per_tok: 9 },
      /num_experts_per_tok.*8, got 9/,
    ],
    ["two numbers of experts", { ...SPARSE, num_local_experts: 4 }, /num_experts 8 and num_local_experts 4/],
    [
      "more experts than routes can name",
      { ...SPARSE, num_experts: 65_537, num_local_experts: 65_537 },
      /65536/,
    ],
  ])("with %s is refused by name", (_, config, message) => {
    // As a file has it: a key that is undefined is not there.
    const parsed = (): unknown => parseModelConfig(JSON.parse(JSON.stringify(config)), "config.json");
    expect(parsed).toThrow(message);
    expect(parsed).toThrow(expect.objectContaining({ name: "InputError" }));
  });

  it("is no number, list or nothing", () => {
    for (const other of [null, 7, [], "qwen3"])
      expect(() => parseModelConfig(other, "x")).toThrow("model_type");
  });
});

describe("config.json of a later version", () => {
  it("is the file that it was, with foreign keys and the spelling of numbers, except for the type of the weights", () => {
    const before = read("qwen3/saved").toString("utf8");
    const after = Buffer.from(withWeightType(read("qwen3/saved"), "bfloat16")).toString("utf8");
    expect(before).toContain("1000000.0");
    expect(after).toBe(`${before.replace('"dtype": "float32"', '"dtype": "bfloat16"').trimEnd()}\n`);
    const big = Buffer.from('{"id":12345678901234567890,"torch_dtype":"float32"}');
    expect(Buffer.from(withWeightType(big, "bfloat16")).toString("utf8")).toContain("12345678901234567890");
  });

  it("is not touched where the type is right, or is not named", () => {
    const file = read("qwen3/saved");
    expect(withWeightType(file, "float32")).toBe(file);
    const bare = Buffer.from('{ "vocab_size" : 1 }');
    expect(withWeightType(bare, "bfloat16")).toBe(bare);
  });

  it("names the type in both spellings where the model is made here, and the tokens that end a text", () => {
    const config = parseModelConfig(DENSE, "x");
    const file = JSON.parse(
      Buffer.from(newConfigFile(config, "float32", { eos_token_id: 2 })).toString("utf8"),
    );
    expect(file).toMatchObject({ dtype: "float32", torch_dtype: "float32", eos_token_id: 2 });
  });
});
