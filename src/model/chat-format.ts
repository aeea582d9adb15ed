// The turns of a conversation as token ids. A chat template is rendered once with placeholders, and only the text
// around them is kept: prompts and observations are encoded by themselves and appended, so nothing that was sampled is
// ever rendered or tokenised again.
import { Template } from "@huggingface/jinja";
import { InputError } from "../failure/errors.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** Placeholders that no template contains and no template trims. */
const FIRST_USER = "first-user-content";
const FIRST_ANSWER = "first-answer-content";
const SECOND_USER = "second-user-content";

export interface ChatFormatOptions {
  /** Jinja source, as tokenizer_config.json carries it. */
  readonly template: string;
  /** Text of the special token that ends an answer. */
  readonly endOfTurn: string;
  readonly system?: string;
}

export class ChatFormat {
  /** Sampling stops at this id; it is sampled, and therefore trained. */
  readonly endOfTurn: number;
  readonly #tokenizer: Tokenizer;
  readonly #opening: readonly [before: readonly number[], after: readonly number[]];
  readonly #next: readonly [before: readonly number[], after: readonly number[]];

  constructor(tokenizer: Tokenizer, { template, endOfTurn, system }: ChatFormatOptions) {
    this.#tokenizer = tokenizer;
    this.endOfTurn = tokenizer.specialToken(endOfTurn);
    const compiled = new Template(template);
    const render = (turns: readonly string[]): string => {
      const messages = turns.map((content, index) => ({
        role: index % 2 === 0 ? "user" : "assistant",
        content,
      }));
      const withSystem = system === undefined ? messages : [{ role: "system", content: system }, ...messages];
      return compiled.render({ messages: withSystem, add_generation_prompt: true, enable_thinking: false });
    };
    this.#opening = this.#encodeAround(render([FIRST_USER]), FIRST_USER);
    const [, afterAnswer] = splitAt(render([FIRST_USER, FIRST_ANSWER, SECOND_USER]), FIRST_ANSWER);
    if (!afterAnswer.startsWith(endOfTurn)) {
      throw new InputError({
        what: "the chat template does not end an answer with the end-of-turn token",
        expected: `${endOfTurn}, got ${JSON.stringify(afterAnswer.slice(0, 40))}`,
        fix: "set endOfTurn to the token that this template uses",
      });
    }
    // The sampler produced the end-of-turn token itself; what follows it up to the next answer is glue.
    this.#next = this.#encodeAround(afterAnswer.slice(endOfTurn.length), SECOND_USER);
  }

  /** Tokens from the start of the conversation to where the first answer begins. */
  opening(instruction: string): number[] {
    return [...this.#opening[0], ...this.#tokenizer.encodeText(instruction), ...this.#opening[1]];
  }

  /** Tokens after an answer's end-of-turn token, around the tokens of an observation, to where the next answer begins. */
  observation(tokens: readonly number[]): number[] {
    return [...this.#next[0], ...tokens, ...this.#next[1]];
  }

  #encodeAround(text: string, placeholder: string): [number[], number[]] {
    const [before, after] = splitAt(text, placeholder);
    return [this.#tokenizer.encodeTemplate(before), this.#tokenizer.encodeTemplate(after)];
  }
}

function splitAt(text: string, placeholder: string): [before: string, after: string] {
  const at = text.indexOf(placeholder);
  if (at === -1) {
    throw new InputError({
      what: "the chat template leaves out a message's content",
      expected: `${placeholder} in ${JSON.stringify(text)}`,
    });
  }
  return [text.slice(0, at), text.slice(at + placeholder.length)];
}
