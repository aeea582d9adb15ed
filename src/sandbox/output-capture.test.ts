import fc from "fast-check";
import { expect, test } from "vitest";
import { OutputCapture } from "./output-capture.ts";

test("head and tail are the first and last bytes, and nothing is lost count of", () => {
  const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 });
  fc.assert(
    fc.property(chunks, fc.integer({ min: 1, max: 64 }), (pieces, limit) => {
      const capture = new OutputCapture(limit);
      for (const piece of pieces) capture.push(piece);
      const all = Buffer.concat(pieces);
      const { head, tail, omittedBytes } = capture.read();
      expect(head.length + tail.length + omittedBytes).toBe(all.length);
      if (all.length <= limit) {
        expect(Buffer.from(head)).toEqual(all);
        expect(tail).toHaveLength(0);
      } else {
        expect(head.length + tail.length).toBe(limit);
        expect(Buffer.from(head)).toEqual(all.subarray(0, Math.ceil(limit / 2)));
        expect(Buffer.from(tail)).toEqual(all.subarray(all.length - Math.floor(limit / 2)));
      }
    }),
  );
});

test("reading in the middle changes nothing that comes later", () => {
  const capture = new OutputCapture(4);
  capture.push(Buffer.from("abc"));
  expect(Buffer.from(capture.read().head).toString()).toBe("abc");
  capture.push(Buffer.from("defg"));
  const { head, tail, omittedBytes } = capture.read();
  expect([Buffer.from(head).toString(), Buffer.from(tail).toString(), omittedBytes]).toEqual(["ab", "fg", 3]);
});

test("what was let go counts as left out", () => {
  const capture = new OutputCapture(8);
  capture.push(Buffer.from("0123456789"));
  expect(capture.keptBytes).toBe(8);
  capture.drop();
  expect(capture.keptBytes).toBe(0);
  expect(capture.read()).toEqual({ head: new Uint8Array(0), tail: new Uint8Array(0), omittedBytes: 10 });
});
