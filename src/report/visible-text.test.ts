import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutText, splitHidden, visibleText } from "./visible-text.ts";

describe("visible text", () => {
  it.each([
    ["\u0000", "\\x00"],
    ["\u001b[31m", "\\x1b[31m"],
    ["\r", "\\r"],
    ["\u007f\u0085", "\\x7f\\x85"],
    ["\u202etxt.exe", "\\u202etxt.exe"],
    ["\u2066a\u2069", "\\u2066a\\u2069"],
    ["a\u200bb\u00ad", "a\\u200bb\\xad"],
    ["\u2028\u2029\ufeff", "\\u2028\\u2029\\ufeff"],
    ["\u{e0041}", "\\u{e0041}"],
    ["\u3164", "\\u3164"],
    ["\ud83d", "\\ud83d"],
    ["\uffff", "\\uffff"],
  ])("writes out %j", (text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });

  it.each(["tab\tand\nnewline", "äöü ß €", "日本語", "😀", "e\u0301", "→ ⏎ …"])("leaves %j alone", text => {
    expect(visibleText(text)).toBe(text);
  });

  it("leaves nothing hidden, and pieces join to the same text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), text => {
        const shown = visibleText(text);
        expect(visibleText(shown)).toBe(shown);
        expect(
          splitHidden(text)
            .map(piece => piece.text)
            .join(""),
        ).toBe(shown);
      }),
    );
  });

  it("cuts to its limit and counts what it leaves out", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), fc.nat({ max: 40 }), (text, limit) => {
        const { head, tail, omitted } = cutText(text, limit);
        expect(head.length + tail.length + omitted).toBe(text.length);
        expect(head.length + tail.length).toBe(Math.min(limit, text.length));
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
      }),
    );
  });
});
