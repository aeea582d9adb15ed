// A model from nothing: a tokenizer learned from the pool's own texts, random weights, and the plainest chat template.
import { join } from "node:path";
import type { RunConfig } from "../config/run-config.ts";
import { type FileSet, filesInMemory } from "../files/content.ts";
import { encodeModelFiles } from "../model/checkpoint.ts";
import type { ModelConfig } from "../model/config.ts";
import { newConfigFile } from "../model/config-file.ts";
import { randomParameters } from "../model/parameters.ts";
import { trainTokenizer } from "../model/train-tokenizer.ts";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import type { NewModel } from "../settings/model-config.ts";
import { readDemonstration } from "../task/demonstration.ts";
import { openPool } from "../task/pool.ts";
import { readText } from "../task/read-text.ts";

/** Texts that every episode contains, whatever its task: they deserve tokens of their own. */
const HARNESS_TEXTS = [
  "user\n",
  "assistant\n",
  "[ok]",
  "done",
  "[exit 1]",
  "[exit 2]",
  "No such file or directory",
  "cannot access",
  "not found",
];
/** Their ids are their places here. */
const SPECIAL_TOKENS = ["<|pad|>", "<|im_start|>", "<|im_end|>"];
const [PAD, , END_OF_TURN] = SPECIAL_TOKENS;
/** Tasks whose texts the vocabulary is learned from; more changes little. */
const TOKENIZER_TASKS = 6000;

const CHAT_TEMPLATE = [
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endfor %}",
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
].join("");

export async function newModelFiles(
  shape: NewModel,
  poolFolder: string,
  { seed }: Pick<RunConfig, "seed">,
): Promise<FileSet> {
  const config: ModelConfig = {
    architecture: "qwen3_moe",
    vocabSize: shape.vocabSize,
    hiddenSize: shape.hiddenSize,
    layerCount: shape.layers,
    headCount: shape.heads,
    keyValueHeadCount: shape.keyValueHeads,
    headDim: shape.headDim,
    intermediateSize: shape.expertSize * shape.expertsPerToken,
    experts: {
      count: shape.experts,
      perToken: shape.expertsPerToken,
      intermediateSize: shape.expertSize,
      normalizeGates: true,
      layers: Array.from({ length: shape.layers }, (_, layer) => layer),
    },
    ropeTheta: shape.ropeTheta,
    rmsNormEpsilon: 1e-6,
    maxPositions: shape.maxPositions,
    tiedEmbeddings: false,
  };
  const parameters = randomParameters(config, new RandomStream(deriveSeed(seed, "new model")));
  const tokenizer = trainTokenizer(await poolTexts(poolFolder), {
    vocabSize: shape.vocabSize,
    specialTokens: SPECIAL_TOKENS,
  });
  const tokenizerConfig = {
    tokenizer_class: "PreTrainedTokenizerFast",
    eos_token: END_OF_TURN,
    pad_token: PAD,
    chat_template: CHAT_TEMPLATE,
  };
  // Where config.json and generation_config.json name no end, `generate()` of transformers goes on to its length limit.
  const tokens = {
    bos_token_id: null,
    eos_token_id: SPECIAL_TOKENS.indexOf(END_OF_TURN),
    pad_token_id: SPECIAL_TOKENS.indexOf(PAD),
  };
  const json = (value: unknown): string => `${JSON.stringify(value, undefined, 1)}\n`;
  return filesInMemory("the new model/", [
    ...encodeModelFiles(parameters, newConfigFile(config, "bfloat16", tokens), "bfloat16"),
    { path: "generation_config.json", body: json({ ...tokens, do_sample: true, temperature: 1 }) },
    { path: "tokenizer.json", body: json(tokenizer) },
    { path: "tokenizer_config.json", body: json(tokenizerConfig) },
  ]);
}

async function poolTexts(folder: string): Promise<string[]> {
  const { names } = await openPool(folder);
  const texts = await Promise.all(
    names.slice(0, TOKENIZER_TASKS).map(async name => {
      const task = join(folder, name);
      return [
        ...HARNESS_TEXTS,
        readText(join(task, "instruction.md")).trimEnd(),
        ...(await readDemonstration(task)),
      ];
    }),
  );
  return texts.flat();
}
