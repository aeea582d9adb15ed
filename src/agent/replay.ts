// Replays a written demonstration through the same loop as a policy. Supervised training then sees exactly the form of
// an episode: real observations, one token stream, a mask.
import { InvariantError } from "../failure/errors.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import type { GenerateRequest, Generation, Sampler } from "../sampler/sampler.ts";
import { computeReceipt } from "../trajectory/receipt.ts";

/**
 * A sampler for one episode: it answers with each command in turn and then `done`. An answer without room for its end is
 * cut, as a policy's is: a longer stream has more positions than the model. Log-probs are 0, and there are no routes,
 * because no model was run.
 */
export function createReplay(commands: readonly string[], chat: ChatFormat, tokenizer: Tokenizer): Sampler {
  const answers = [...commands, "done"];
  let turn = 0;
  return {
    generate({ tokens, maxNewTokens, policy }: GenerateRequest): Promise<Generation> {
      const answer = answers[turn++];
      if (answer === undefined) throw new InvariantError("the demonstration is over", { turn });
      const whole = Int32Array.from([...tokenizer.encodeText(answer), chat.endOfTurn]);
      const sampled = whole.slice(0, maxNewTokens);
      const logProbs = new Float32Array(sampled.length);
      const receipt = computeReceipt({
        prompt: tokens,
        sampled,
        logProbs,
        policyVersion: policy.version,
      });
      return Promise.resolve({
        tokens: sampled,
        logProbs,
        finishReason: sampled.length < whole.length ? "length" : "stop",
        policyVersion: policy.version,
        receipt,
      });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
