// Turns text into token ids and back, as a Hugging Face tokenizer.json says. Text that a person or a terminal wrote is
// encoded without special tokens, so that output containing "<|im_end|>" cannot forge the end of a turn.
import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";

const TokenizerJson = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.int().nonnegative(), content: z.string() })).default([]),
  model: z.looseObject({ vocab: z.record(z.string(), z.int().nonnegative()) }),
});

export class Tokenizer {
  readonly #withSpecials: HuggingFaceTokenizer;
  readonly #withoutSpecials: HuggingFaceTokenizer;
  readonly #specials: ReadonlyMap<string, number>;
  readonly #specialIds: ReadonlySet<number>;
  /** One more than the largest token id. */
  readonly vocabSize: number;

  /** @throws InputError naming `file` when the JSON is no tokenizer */
  constructor(json: unknown, file: string) {
    const parsed = TokenizerJson.safeParse(json);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new InputError({
        what: "not a tokenizer",
        where: `${file}: ${issue.path.join(".")}`,
        expected: issue.message,
      });
    }
    const { added_tokens: added, model } = parsed.data;
    const options = { clean_up_tokenization_spaces: false };
    try {
      this.#withSpecials = new HuggingFaceTokenizer(parsed.data, options);
      this.#withoutSpecials = new HuggingFaceTokenizer({ ...parsed.data, added_tokens: [] }, options);
    } catch (cause) {
      throw new InputError(
        {
          what: "not a tokenizer",
          where: file,
          expected: `expected one that @huggingface/tokenizers loads, got ${cause instanceof Error ? cause.message : cause}`,
          fix: "copy the file from the model that it belongs to",
        },
        { cause },
      );
    }
    this.#specials = new Map(added.map(({ content, id }) => [content, id]));
    this.#specialIds = new Set(this.#specials.values());
    const ids = [...Object.values(model.vocab), ...this.#specials.values()];
    this.vocabSize = ids.reduce((largest, id) => Math.max(largest, id), 0) + 1;
  }

  /** Encodes our own text (a chat template): special tokens in it are recognised. */
  encodeTemplate(text: string): number[] {
    return text === "" ? [] : this.#withSpecials.encode(text, { add_special_tokens: false }).ids;
  }

  /** Encodes foreign text. Whatever the text contains, the result has no special token. */
  encodeText(text: string): number[] {
    return text === "" ? [] : this.#withoutSpecials.encode(text, { add_special_tokens: false }).ids;
  }

  /** Text for people to read; encoding it again need not give the same ids. */
  decode(ids: Iterable<number>): string {
    const list = [...ids];
    return list.length === 0 ? "" : this.#withSpecials.decode(list, { skip_special_tokens: false });
  }

  /** Whether an id is special: foreign text is never encoded to it. */
  isSpecial(id: number): boolean {
    return this.#specialIds.has(id);
  }

  /** Id of a special token. @throws InputError when the tokenizer has none of that name */
  specialToken(content: string): number {
    const id = this.#specials.get(content);
    if (id === undefined) {
      throw new InputError({
        what: `the tokenizer has no special token ${content}`,
        expected: [...this.#specials.keys()].join(" "),
      });
    }
    return id;
  }
}
