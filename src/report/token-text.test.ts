import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InputError } from "../failure/errors.ts";
import { Tokenizer } from "../model/tokenizer.ts";
import { trainTokenizer } from "../model/train-tokenizer.ts";
import { TokenTexts } from "./token-text.ts";

const JSON_TOKENIZER = trainTokenizer(["echo hello > a.txt", "echo hello there"], {
  vocabSize: 270,
  specialTokens: ["<|pad|>", "<|im_end|>"],
});
const tokenizer = new Tokenizer(JSON_TOKENIZER, "tokenizer.json");
const texts = new TokenTexts(JSON_TOKENIZER, "tokenizer.json");

describe("token texts", () => {
  it("read together they are the text that was encoded", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), text => {
        expect(texts.all(tokenizer.encodeText(text))).toBe(text);
      }),
    );
  });

  it("show the bytes of a token that is no whole character", () => {
    const ids = tokenizer.encodeText("€");
    expect(ids.map(id => texts.one(id))).toEqual(["\\xe2", "\\x82", "\\xac"]);
    expect(texts.all(ids)).toBe("€");
    expect(texts.all([...ids.slice(1), ...tokenizer.encodeText("a")])).toBe("\\x82\\xaca");
  });

  it("know special tokens, and ids that are none", () => {
    expect([texts.one(1), texts.isSpecial(1), texts.isSpecial(40)]).toEqual(["<|im_end|>", true, false]);
    expect(texts.one(99_999)).toBe("⟨99999⟩");
  });

  it.each([
    {},
    { model: { vocab: { a: 0 } } },
    { model: { vocab: { a: 0 } }, decoder: { type: "WordPiece" } },
  ])("refuse the tokenizer %j", json => {
    expect(() => new TokenTexts(json, "tokenizer.json")).toThrow(InputError);
  });
});
