import fc from "fast-check";
import { expect, test } from "vitest";
import { capturedBytes, capturedText } from "./captured-text.ts";
import { OutputCapture } from "./output-capture.ts";

function capture(bytes: Uint8Array, limit: number) {
  const output = new OutputCapture(limit);
  output.push(bytes);
  return output.read();
}

test("whole output is the text itself, white space and byte order mark included", () => {
  for (const text of ["", "  a\n\n", "\uFEFFbom", "a\r\nb\0c", "é🎉"])
    expect(capturedText(capture(Buffer.from(text), 100))).toBe(text);
});

test("bytes that are no UTF-8 become replacement characters", () => {
  expect(capturedText(capture(Uint8Array.of(0xff, 0xfe, 0x80), 100))).toBe("���");
});

test("a cut never leaves half a character, and the marker counts all bytes that are missing", () => {
  const pieces = fc.array(fc.constantFrom("a", "é", "€", "🎉"), { minLength: 10, maxLength: 60 });
  fc.assert(
    fc.property(pieces, fc.integer({ min: 2, max: 12 }), (characters, limit) => {
      const bytes = Buffer.from(characters.join(""));
      fc.pre(bytes.length > limit);
      const text = capturedText(capture(bytes, limit));
      const [, head = "", count = "", tail = ""] =
        /^(.*)\n\[… (\d+) bytes left out …\]\n(.*)$/s.exec(text) ?? [];
      expect(text).not.toContain("�");
      expect(text.isWellFormed()).toBe(true);
      expect(Buffer.byteLength(head) + Number(count) + Buffer.byteLength(tail)).toBe(bytes.length);
      expect(characters.join("").startsWith(head)).toBe(true);
      expect(characters.join("").endsWith(tail)).toBe(true);
    }),
  );
});

test("raw bytes keep what is no UTF-8", () => {
  expect(capturedBytes(capture(Uint8Array.of(0xff, 0, 0x80), 100))).toEqual(Uint8Array.of(0xff, 0, 0x80));
  expect(Buffer.from(capturedBytes(capture(Buffer.from("abcdefgh"), 4))).toString()).toBe(
    "ab\n[… 4 bytes left out …]\ngh",
  );
});
