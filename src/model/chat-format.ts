// Writes the turns of a conversation as token ids. A chat template is rendered once with placeholders, and only the
// text around them is kept. Prompts and observations are encoded by themselves and appended, so nothing that was
// sampled is ever rendered or tokenised again.
import { Template } from "@huggingface/jinja";
import { InputError, InvariantError } from "../failure/errors.ts";
import type { Tokenizer } from "./tokenizer.ts";

/** Placeholders that no template contains and no template trims. */
const FIRST_USER = "first-user-content";
const FIRST_ANSWER = "first-answer-content";
const SECOND_USER = "second-user-content";
const FIRST_RESULT = "first-tool-content";
const SECOND_RESULT = "second-tool-content";

/** The content of a message: text, or parts of which some are ids that a sampler wrote and that stay as they are. */
export type Content = string | readonly (string | Int32Array)[];

/** A function in the form that chat templates take: OpenAI's, with a JSON schema of its arguments. */
export interface ToolDefinition {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: object };
}

export interface ChatFormatOptions {
  /** Jinja source, as a model folder carries it. */
  readonly template: string;
  /** The file that the template is from, for messages. */
  readonly where?: string;
  /** Text of the special token that ends an answer. */
  readonly endOfTurn: string;
  readonly system?: string;
  /** Functions that the template describes to the policy. */
  readonly tools?: readonly ToolDefinition[];
}

interface Message {
  readonly role: "user" | "assistant" | "tool";
  readonly content: string;
}

export class ChatFormat {
  /** Sampling stops at this id; it is sampled, and therefore trained. */
  readonly endOfTurn: number;
  readonly #tokenizer: Tokenizer;
  readonly #opening: readonly [before: readonly number[], after: readonly number[]];
  readonly #next: readonly [before: readonly number[], after: readonly number[]];
  /** Tokens around the responses of tools; undefined without tools. */
  readonly #results: readonly [before: number[], between: number[], after: number[]] | undefined;
  readonly #render: (messages: readonly Message[]) => string;
  #betweenUsers: readonly number[] | undefined;

  /** @throws InputError naming the template's file when it cannot be used */
  constructor(tokenizer: Tokenizer, { template, where, endOfTurn, system, tools }: ChatFormatOptions) {
    this.#tokenizer = tokenizer;
    this.endOfTurn = tokenizer.specialToken(endOfTurn);
    const compiled = asInput(where, () => new Template(template));
    this.#render = messages =>
      asInput(where, () =>
        compiled.render({
          messages: system === undefined ? messages : [{ role: "system", content: system }, ...messages],
          ...(tools !== undefined && { tools }),
          add_generation_prompt: true,
          enable_thinking: false,
        }),
      );
    const question: Message = { role: "user", content: FIRST_USER };
    const answer: Message = { role: "assistant", content: FIRST_ANSWER };
    /** The text between an answer's end-of-turn token, which the sampler itself produces, and the next answer. */
    const afterAnswer = (...next: readonly Message[]): string => {
      const [, after] = splitAt(this.#render([question, answer, ...next]), FIRST_ANSWER);
      if (after.startsWith(endOfTurn)) return after.slice(endOfTurn.length);
      throw new InputError({
        what: "the chat template does not end an answer with the end-of-turn token",
        expected: `${endOfTurn}, got ${JSON.stringify(after.slice(0, 40))}`,
        fix: "set endOfTurn to the token that this template uses",
      });
    };
    const opening = this.#render([question]);
    this.#opening = this.#encodeAround(opening, FIRST_USER);
    this.#next = this.#encodeAround(afterAnswer({ role: "user", content: SECOND_USER }), SECOND_USER);
    if (tools !== undefined) {
      assertDescribed(tools, opening);
      const responses = [FIRST_RESULT, SECOND_RESULT].map(
        content => ({ role: "tool", content }) satisfies Message,
      );
      const [before, rest] = splitAt(afterAnswer(...responses), FIRST_RESULT);
      const [between, after] = splitAt(rest, SECOND_RESULT);
      this.#results = [
        tokenizer.encodeTemplate(before),
        tokenizer.encodeTemplate(between),
        tokenizer.encodeTemplate(after),
      ];
    }
  }

  /**
   * Tokens from the start of the conversation to where the first answer begins. Most conversations open with one
   * message.
   */
  opening(...messages: readonly Content[]): number[] {
    const [before, after] = this.#opening;
    // Not by push(...): a message of a hundred thousand tokens is more arguments than a call takes.
    const said = messages.flatMap((message, index) => [
      ...(index === 0 ? [] : this.#tokensBetweenUsers()),
      ...this.encode(message),
    ]);
    return [...before, ...said, ...after];
  }

  /** Tokens of a message's content. Special tokens among the sampled ones are left out: they could forge a turn. */
  encode(content: Content): number[] {
    const parts = typeof content === "string" ? [content] : content;
    return parts.flatMap(part =>
      typeof part === "string"
        ? this.#tokenizer.encodeText(part)
        : [...part].filter(id => !this.#tokenizer.isSpecial(id)),
    );
  }

  /**
   * Proves that the template can put one user message behind another, which a summary of the work needs.
   *
   * @throws InputError when it cannot
   */
  assertUserMessagesInARow(): void {
    this.#tokensBetweenUsers();
  }

  /** Tokens after an answer's end-of-turn token, around the responses of its tool calls, to the next answer. */
  toolResponses(responses: readonly (readonly number[])[]): number[] {
    if (this.#results === undefined) throw new InvariantError("a chat format without tools has no responses");
    const [before, between, after] = this.#results;
    return [
      ...before,
      ...responses.flatMap((tokens, index) => (index === 0 ? tokens : [...between, ...tokens])),
      ...after,
    ];
  }

  /**
   * Tokens after an answer's end-of-turn token, around the tokens of an observation, to where the next answer begins.
   */
  observation(tokens: readonly number[]): number[] {
    return [...this.#next[0], ...tokens, ...this.#next[1]];
  }

  #tokensBetweenUsers(): readonly number[] {
    if (this.#betweenUsers === undefined) {
      const messages = [FIRST_USER, SECOND_USER].map(
        content => ({ role: "user", content }) satisfies Message,
      );
      let rendered: string;
      try {
        rendered = this.#render(messages);
      } catch (cause) {
        throw new InputError(
          {
            what: "the chat template refuses one user message behind another",
            expected: "that it takes them, as a summary of the work needs it",
            fix: "leave agent.summary out",
          },
          { cause },
        );
      }
      const [, rest] = splitAt(rendered, FIRST_USER);
      this.#betweenUsers = this.#tokenizer.encodeTemplate(splitAt(rest, SECOND_USER)[0]);
    }
    return this.#betweenUsers;
  }

  #encodeAround(text: string, placeholder: string): [number[], number[]] {
    const [before, after] = splitAt(text, placeholder);
    return [this.#tokenizer.encodeTemplate(before), this.#tokenizer.encodeTemplate(after)];
  }
}

/** Errors of the parser, or of the template's own code (raise_exception), are the user's and not a bug of ours. */
function asInput<Result>(where: string | undefined, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    throw new InputError(
      {
        what: "the chat template cannot be used",
        where,
        expected: `expected Jinja that renders a conversation, got ${cause instanceof Error ? cause.message : cause}`,
        fix: "copy the template from the model that it belongs to",
      },
      { cause },
    );
  }
}

/** A template that knows no tools leaves them out without an error, and the policy would never learn of them. */
function assertDescribed(tools: readonly ToolDefinition[], opening: string): void {
  const names = tools.map(tool => tool.function.name);
  const missing = names.find(name => !opening.includes(`"${name}"`));
  if (missing === undefined) return;
  throw new InputError({
    what: "the chat template does not describe tools to the model",
    expected: `"${missing}" in ${JSON.stringify(opening.slice(0, 200))}`,
    fix: "choose another agent.protocol, or a model whose template takes tools",
  });
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
