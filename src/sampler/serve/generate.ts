// Turns the body of a /generate request into a request of a sampler, and its generation into the body of the response.
import { createHash, randomUUID } from "node:crypto";
import type { ModelConfig } from "../../model/config.ts";
import { deriveSeed } from "../../random/seed.ts";
import { assertRequest } from "../assert-request.ts";
import type { GenerateRequest, Generation } from "../sampler.ts";
import { encodeRoutes, routeShape } from "../sglang/routes-text.ts";
import type { GenerateBody } from "../sglang/wire.ts";
import type { ServedWeights } from "./served-policy.ts";

/** SGLang's default. */
const DEFAULT_NEW_TOKENS = 128;

/** @throws InputError when the model cannot do what is asked */
export function toRequest(
  body: GenerateBody,
  { policy, config }: ServedWeights,
): Omit<GenerateRequest, "signal"> {
  const { input_ids: ids, sampling_params: sampling, routed_experts_start_len: routesHeld } = body;
  const room = config.maxPositions - ids.length;
  const request = {
    tokens: Int32Array.from(ids),
    routesHeld,
    sampling: {
      temperature: sampling.temperature,
      topP: sampling.top_p,
      topK: sampling.top_k === -1 ? 0 : sampling.top_k,
    },
    stop: sampling.stop_token_ids,
    maxNewTokens: sampling.max_new_tokens ?? Math.max(1, Math.min(DEFAULT_NEW_TOKENS, room)),
    seed: seedOf(sampling),
  };
  assertRequest(request, config);
  return { ...request, policy };
}

/** Our clients give the whole seed; others a number; without either every answer is another one. */
function seedOf({ custom_params: custom, sampling_seed: number }: GenerateBody["sampling_params"]): string {
  if (custom !== null && custom !== undefined) return custom.seed;
  return number === null || number === undefined
    ? deriveSeed(randomUUID())
    : deriveSeed("sampling_seed", number);
}

export function toAnswer(
  id: string,
  body: GenerateBody,
  generation: Generation,
  config: ModelConfig,
): string {
  const { tokens, logProbs, routes, finishReason, policyVersion, receipt } = generation;
  const shape = routeShape(config);
  return JSON.stringify({
    text: "",
    output_ids: [...tokens],
    meta_info: {
      id,
      finish_reason:
        finishReason === "stop"
          ? { type: "stop", matched: tokens[tokens.length - 1] }
          : { type: "length", length: tokens.length },
      prompt_tokens: body.input_ids.length,
      completion_tokens: tokens.length,
      weight_version: `${policyVersion}`,
      ...(body.return_logprob && {
        // A float32 as the shortest decimal of its double comes back bit for bit.
        output_token_logprobs: Array.from(logProbs, (logProb, index) => [logProb, tokens[index], null]),
      }),
      ...(body.return_routed_experts && routes && shape && { routed_experts: encodeRoutes(routes, shape) }),
      // The receipt covers log-probs and routes: whoever did not ask for them could not check it.
      ...(body.return_logprob &&
        (body.return_routed_experts || routes === undefined) && {
          t1_receipt: Buffer.from(receipt).toString("hex"),
        }),
    },
  });
}

/** Tells two requests of one id apart. */
export function hashBody(body: GenerateBody): string {
  return createHash("sha256").update(JSON.stringify(body)).digest("base64");
}
