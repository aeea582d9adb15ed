// SGLang's /generate as client and server here speak it (github.com/sgl-project/sglang, managers/io_struct.py and
// sampling/sampling_params.py, read in 2026): ids in, ids out, no text. What is ours beside it: the seed of 128 bits
// and the policy in `custom_params`, and the receipt in `meta_info`.
import { z } from "zod";

const TokenId = z.int().nonnegative();

/** 32 hexadecimal digits, as `deriveSeed` makes them. */
const Seed = z.string().regex(/^[0-9a-f]{32}$/, "expected 32 hexadecimal digits");

/** What a server is told to load, and what it calls it from then on. */
const Weights = z.strictObject({
  model_path: z.string().min(1),
  weight_version: z.string().regex(/^\d{1,9}$/, "expected the number of a policy"),
});
export type Weights = z.infer<typeof Weights>;

const Sampling = z.strictObject({
  /** Without it 128, or what fits. */
  max_new_tokens: z.int().min(1).optional(),
  temperature: z.number().min(0).max(100).default(1),
  top_p: z.number().gt(0).max(1).default(1),
  /** -1 keeps every token. */
  top_k: z.union([z.literal(-1), z.int().min(1)]).default(-1),
  stop_token_ids: z
    .array(TokenId)
    .max(64)
    .nullish()
    .transform(ids => ids ?? []),
  sampling_seed: z.int().nonnegative().nullish(),
  /** With a policy, none but that one samples: of several servers at one address each may have been told another. */
  custom_params: z.strictObject({ seed: Seed, policy: Weights.optional() }).nullish(),
  // Of no meaning without text, and so allowed.
  skip_special_tokens: z.boolean().optional(),
  spaces_between_special_tokens: z.boolean().optional(),
  no_stop_trim: z.boolean().optional(),
  // Would change what is sampled, and so allowed only where they do not.
  n: z.literal(1).optional(),
  ignore_eos: z.literal(false).optional(),
  min_new_tokens: z.literal(0).optional(),
  min_p: z.literal(0).optional(),
  frequency_penalty: z.literal(0).optional(),
  presence_penalty: z.literal(0).optional(),
  repetition_penalty: z.literal(1).optional(),
});

/** What the server takes. A key that it does not know is refused: ignoring one would sample something else. */
export const GenerateBody = z.strictObject({
  rid: z.string().min(1).max(128).optional(),
  input_ids: z.array(TokenId).min(1),
  sampling_params: Sampling.prefault({}),
  return_logprob: z.boolean().default(false),
  return_routed_experts: z.boolean().default(false),
  /** Absolute position; the answer has the rows [start, tokens - 1). */
  routed_experts_start_len: z.int().nonnegative().default(0),
  stream: z.literal(false).optional(),
  logprob_start_len: z.literal(-1).optional(),
  top_logprobs_num: z.literal(0).optional(),
  return_text_in_logprobs: z.literal(false).optional(),
  return_hidden_states: z.literal(false).optional(),
});
export type GenerateBody = z.infer<typeof GenerateBody>;

export const UpdateWeightsBody = Weights.extend({
  abort_all_requests: z.literal(false).optional(),
  flush_cache: z.literal(true).optional(),
});

/** What the client reads of an answer; servers say more. */
export const GenerateAnswer = z.looseObject({
  output_ids: z.array(TokenId),
  meta_info: z.looseObject({
    finish_reason: z.union([
      z.looseObject({ type: z.literal("stop"), matched: z.unknown() }),
      z.looseObject({ type: z.literal("length") }),
      z.looseObject({ type: z.literal("abort"), message: z.string().nullish() }),
    ]),
    weight_version: z.string().optional(),
    /** [log-prob, id, text], one for each sampled token. A log-prob that is no number comes as null. */
    output_token_logprobs: z.array(z.tuple([z.unknown(), TokenId], z.unknown())).optional(),
    routed_experts: z.string().nullish(),
    t1_receipt: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
  }),
});
export type GenerateAnswer = z.infer<typeof GenerateAnswer>;

/** How our server says that a policy cannot be sampled from, which no other try can mend. */
export const NotFiniteAnswer = z.looseObject({
  error: z.looseObject({ type: z.literal("PolicyNotFinite"), message: z.string() }),
});

/** How servers say what went wrong: SGLang with a message in an object, FastAPI with a detail. */
export const ErrorAnswer = z.union([
  z.looseObject({ error: z.looseObject({ message: z.string() }) }).transform(({ error }) => error.message),
  z.looseObject({ message: z.string() }).transform(({ message }) => message),
  z.looseObject({ detail: z.unknown() }).transform(({ detail }) => JSON.stringify(detail)),
]);
