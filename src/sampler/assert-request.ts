// What a model can be asked for. A sampler refuses the rest before it computes anything: one request that cannot be
// computed would fail the batch that it is in.
import { InputError } from "../failure/errors.ts";
import type { ModelConfig } from "../model/config.ts";
import type { GenerateRequest } from "./sampler.ts";

/** @throws InputError naming the field, what it may be and what it is */
export function assertRequest(
  { tokens, routesHeld, sampling, stop, maxNewTokens, seed }: Omit<GenerateRequest, "policy" | "signal">,
  { vocabSize, maxPositions }: Pick<ModelConfig, "vocabSize" | "maxPositions">,
): void {
  const check = (holds: boolean, where: string, expected: string): void => {
    if (!holds) throw new InputError({ what: "invalid request", where, expected: `expected ${expected}` });
  };
  const isToken = (id: number): boolean => Number.isInteger(id) && id >= 0 && id < vocabSize;
  const foreign = tokens.find(id => !isToken(id)) ?? stop.find(id => !isToken(id));
  check(foreign === undefined, "input_ids, stop_token_ids", `ids below ${vocabSize}, got ${foreign}`);
  check(tokens.length > 0, "input_ids", "at least one token");
  check(
    Number.isInteger(maxNewTokens) && maxNewTokens > 0,
    "max_new_tokens",
    `1 or more, got ${maxNewTokens}`,
  );
  check(
    tokens.length + maxNewTokens <= maxPositions,
    "input_ids, max_new_tokens",
    `at most ${maxPositions} tokens in all, the positions of the model, got ${tokens.length} and ${maxNewTokens} new ones`,
  );
  check(
    Number.isInteger(routesHeld) && routesHeld >= 0 && routesHeld <= tokens.length,
    "routed_experts_start_len",
    `0 to ${tokens.length}, the number of input_ids, got ${routesHeld}`,
  );
  const { temperature, topP, topK } = sampling;
  check(Number.isFinite(temperature) && temperature >= 0, "temperature", `0 or more, got ${temperature}`);
  check(topP > 0 && topP <= 1, "top_p", `above 0 and at most 1, got ${topP}`);
  check(Number.isInteger(topK) && topK >= 0, "top_k", `an integer, got ${topK}`);
  check(/^[0-9a-f]{32}$/.test(seed), "seed", `32 hexadecimal digits, got ${seed}`);
}
