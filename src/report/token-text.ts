// Shows token ids as text, one by one. A byte-level token can hold a part of a character; we keep its bytes, so that
// tokens that complete each other read as one text and a stray byte shows as `\xNN`.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { byteAlphabet } from "../model/train-tokenizer.ts";

const TokenizerJson = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.int().nonnegative(), content: z.string() })).default([]),
  decoder: z.looseObject({ type: z.string() }).nullish(),
  model: z.looseObject({ vocab: z.record(z.string(), z.int().nonnegative()) }),
});

export class TokenTexts {
  readonly #bytes = new Map<number, Uint8Array>();
  readonly #specials = new Set<number>();

  /**
   * @param json tokenizer.json of a byte-level tokenizer, as Qwen's are
   * @throws InputError when it is no such tokenizer
   */
  constructor(json: unknown, file: string) {
    const parsed = TokenizerJson.safeParse(json);
    if (!parsed.success || parsed.data.decoder?.type !== "ByteLevel") {
      const [issue] = parsed.error?.issues ?? [];
      throw new InputError({
        what: "the tokens of this tokenizer cannot be shown",
        where: file,
        expected:
          issue === undefined ? "a decoder of type ByteLevel" : `${issue.path.join(".")}: ${issue.message}`,
      });
    }
    const byteOf = new Map(byteAlphabet().map((character, byte) => [character, byte]));
    for (const [token, id] of Object.entries(parsed.data.model.vocab)) {
      const codes = [...token].map(character => byteOf.get(character));
      const isBytes = codes.every(code => code !== undefined);
      this.#bytes.set(id, isBytes ? Uint8Array.from(codes) : Buffer.from(token));
    }
    for (const { id, content } of parsed.data.added_tokens) {
      this.#bytes.set(id, Buffer.from(content));
      this.#specials.add(id);
    }
  }

  /** Whether only the chat template or the sampler writes this token, never a terminal. */
  isSpecial(id: number): boolean {
    return this.#specials.has(id);
  }

  /** Text of one token; bytes that are no whole character as `\xNN`, an unknown id as `⟨id⟩`. */
  one(id: number): string {
    const bytes = this.#bytes.get(id);
    return bytes === undefined ? `⟨${id}⟩` : textOfBytes(bytes);
  }

  /** Text of consecutive tokens, read as a whole. */
  all(ids: Iterable<number>): string {
    const parts = [...ids].map(id => this.#bytes.get(id) ?? Buffer.from(`⟨${id}⟩`));
    return textOfBytes(Buffer.concat(parts));
  }
}

/** Decodes UTF-8 and shows every byte that belongs to no whole character as `\xNN`. */
function textOfBytes(bytes: Uint8Array): string {
  const whole = decodeStrictly(bytes);
  if (whole !== undefined) return whole;
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find(
      size => at + size <= bytes.length && decodeStrictly(bytes.subarray(at, at + size)) !== undefined,
    );
    if (length === undefined) text += `\\x${bytes[at].toString(16).padStart(2, "0")}`;
    else text += decodeStrictly(bytes.subarray(at, at + length));
    at += length ?? 1;
  }
  return text;
}

function decodeStrictly(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
