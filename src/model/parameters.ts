// Names and shapes of a model's parameters as its checkpoint has them, and their first values.
import { InputError } from "../failure/errors.ts";
import type { RandomStream } from "../random/stream.ts";
import { ARCHITECTURES, type NamedShape } from "./architectures/table.ts";
import type { ModelConfig } from "./config.ts";

/** The layer after the last norm: logits over the vocabulary (actor) or one number (critic). */
export type Head = "language" | "value";

/** Parameters by name, single precision, row-major. */
export type Parameters = ReadonlyMap<
  string,
  { readonly shape: readonly number[]; readonly data: Float32Array }
>;

/** Shape of every parameter, in checkpoint order. */
export function parameterShapes(config: ModelConfig, head: Head): Map<string, readonly number[]> {
  const { hiddenSize: D, vocabSize, layerCount } = config;
  const { parameters } = ARCHITECTURES[config.architecture];
  const layers = Array.from({ length: layerCount }, (_, layer) => parameters(config, layer)).flat();
  const shapes: NamedShape[] = [
    ["model.embed_tokens.weight", [vocabSize, D]],
    ...layers,
    ["model.norm.weight", [D]],
  ];
  if (head === "value") shapes.push(["value_head.weight", [1, D]]);
  else if (!config.tiedEmbeddings) shapes.push(["lm_head.weight", [vocabSize, D]]);
  return new Map(shapes);
}

/** Whether weight decay applies: not to norm weights and other vectors, as in Megatron. */
export function isDecayed(shape: readonly number[]): boolean {
  return shape.length > 1;
}

/**
 * Random parameters for training from nothing. Linear layers are normal with std 0.04; those that write into the
 * residual stream have std 0.02, so that depth does not blow it up. Norm weights are 1. The embedding starts at eight
 * times the output layer's 0.02: with equal scales a model this small needs several times the steps to begin copying
 * its input.
 */
export function randomParameters(config: ModelConfig, random: RandomStream): Parameters {
  const parameters = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const [name, shape] of parameterShapes(config, "language")) {
    const data = new Float32Array(shape.reduce((product, dim) => product * dim, 1));
    const std = initialStd(name);
    for (let i = 0; i < data.length; i++) data[i] = shape.length === 1 ? 1 : std * random.normal();
    parameters.set(name, { shape, data });
  }
  return parameters;
}

/** A critic that has learned nothing yet: the body of a language model with a value head of zeros. */
export function criticFromActor(config: ModelConfig, actor: Parameters): Parameters {
  const critic = new Map<string, { shape: readonly number[]; data: Float32Array }>();
  for (const [name, shape] of parameterShapes(config, "value")) {
    const source = actor.get(name);
    critic.set(name, { shape, data: source?.data.slice() ?? new Float32Array(config.hiddenSize) });
  }
  return critic;
}

/**
 * Compares names and shapes only, so the headers of the weight files are enough.
 *
 * @throws InputError naming `file` when a parameter is missing, left over or of another shape
 */
export function assertParameters(
  parameters: ReadonlyMap<string, { readonly shape: readonly number[] }>,
  config: ModelConfig,
  head: Head,
  file: string,
): void {
  const expected = parameterShapes(config, head);
  const refuse = (what: string, wanted: string): never => {
    throw new InputError({
      what,
      where: file,
      expected: wanted,
      fix: "use a checkpoint that belongs to this config.json",
    });
  };
  for (const [name, shape] of expected) {
    const found = parameters.get(name);
    if (found === undefined) refuse(`parameter ${name} is missing`, `shape [${shape}]`);
    else if (found.shape.join() !== shape.join())
      refuse(`parameter ${name} has shape [${found.shape}]`, `[${shape}]`);
  }
  for (const name of parameters.keys()) {
    if (!expected.has(name))
      refuse(`parameter ${name} belongs to no part of this model`, `${expected.size} known names`);
  }
}

/**
 * Looks at every weight, so that a model with a number that is none is refused before anything is played by it.
 *
 * @throws InputError naming the first parameter that holds NaN or an infinity
 */
export function assertFinite(parameters: Parameters, where: string): void {
  for (const [name, { data }] of parameters) {
    const at = data.findIndex(weight => !Number.isFinite(weight));
    if (at >= 0)
      throw new InputError({
        what: `parameter ${name} holds ${data[at]}`,
        where,
        expected: `finite weights; number ${at} of ${data.length} is the first that is not`,
        fix: "use a checkpoint whose training did not diverge",
      });
  }
}

function initialStd(name: string): number {
  if (name === "model.embed_tokens.weight") return 0.16;
  return /(o_proj|down_proj|lm_head|mlp\.gate)\.weight$/.test(name) ? 0.02 : 0.04;
}
