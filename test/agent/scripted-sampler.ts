// A sampler that plays a script. It checks what a real one could not know to be wrong: that every prompt goes on from
// what it gave before, token by token.
import type { ChatFormat } from "../../src/model/chat-format.ts";
import type { Tokenizer } from "../../src/model/tokenizer.ts";
import type { GenerateRequest, Generation, Sampler } from "../../src/sampler/sampler.ts";
import { computeReceipt } from "../../src/trajectory/receipt.ts";
import { allocateRoutes, type RouteLayout } from "../../src/trajectory/routes.ts";

export const LAYOUT: RouteLayout = { layerCount: 2, expertsPerToken: 1, expertCount: 4 };

/** Returns the next answer; the prompt as text helps a script to choose it. */
export type Line = string | ((prompt: string) => string);

export interface ScriptedSampler extends Sampler {
  /** The whole prompt of each request, as text. */
  readonly prompts: readonly string[];
  readonly generations: readonly Generation[];
}

/** @param lines one per request; an answer that is longer than allowed is cut as a sampler does it */
export function scriptedSampler(
  lines: readonly Line[],
  chat: ChatFormat,
  tokenizer: Tokenizer,
): ScriptedSampler {
  const prompts: string[] = [];
  const generations: Generation[] = [];
  return {
    prompts,
    generations,
    generate({ tokens, routesHeld, maxNewTokens, policy }: GenerateRequest): Promise<Generation> {
      const prompt = tokenizer.decode(tokens);
      const line = lines[prompts.length];
      prompts.push(prompt);
      if (line === undefined) throw new Error(`the script is over; the prompt ends in ${prompt.slice(-300)}`);
      const answer = typeof line === "string" ? line : line(prompt);
      // Sample one character per token, as no tokenizer would encode it, so code that tokenises an answer again fails.
      const whole = [...[...answer].flatMap(one => tokenizer.encodeText(one)), chat.endOfTurn];
      const sampled = Int32Array.from(whole.slice(0, maxNewTokens));
      const logProbs = Float32Array.from(sampled, id => -1 / (1 + id));
      const routes = allocateRoutes(tokens.length + sampled.length - 1 - routesHeld, LAYOUT);
      routes.ids.forEach((_, index) => {
        routes.ids[index] = (routesHeld + index) % LAYOUT.expertCount;
      });
      const receipt = computeReceipt({
        prompt: tokens,
        sampled,
        logProbs,
        routes,
        policyVersion: policy.version,
      });
      const generation: Generation = {
        tokens: sampled,
        logProbs,
        routes,
        finishReason: whole.length > maxNewTokens ? "length" : "stop",
        policyVersion: policy.version,
        receipt,
      };
      generations.push(generation);
      return Promise.resolve(generation);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
