import fc from "fast-check";
import { expect, test } from "vitest";
import { BODY_LIMIT_BYTES, encodeFrame, type Frame, FrameReader, HEADER_LIMIT_BYTES } from "./frames.ts";

test("frames come out as they went in, wherever the stream is cut", () => {
  const frame = fc.record({ header: fc.jsonValue(), body: fc.uint8Array({ maxLength: 300 }) });
  fc.assert(
    fc.property(
      fc.array(frame, { maxLength: 6 }),
      fc.array(fc.nat(400), { maxLength: 40 }),
      (frames, cuts) => {
        const stream = Buffer.concat(frames.flatMap(({ header, body }) => encodeFrame(header, body)));
        const places = [
          0,
          ...cuts.map(cut => cut % (stream.length + 1)).toSorted((a, b) => a - b),
          stream.length,
        ];
        const reader = new FrameReader();
        const read: Frame[] = [];
        for (const [index, start] of places.entries())
          read.push(...reader.push(stream.subarray(start, places[index + 1])));
        expect(read.map(({ header }) => JSON.stringify(header))).toEqual(
          frames.map(({ header }) => JSON.stringify(header)),
        );
        expect(read.map(({ body }) => [...body])).toEqual(frames.map(({ body }) => [...body]));
      },
    ),
  );
});

test("lengths beyond the limits are refused before their bytes are awaited", () => {
  for (const [header, body] of [
    [HEADER_LIMIT_BYTES + 1, 0],
    [2, BODY_LIMIT_BYTES + 1],
  ] as const) {
    const prefix = Buffer.alloc(8);
    prefix.writeUInt32BE(header, 0);
    prefix.writeUInt32BE(body, 4);
    expect(() => new FrameReader().push(prefix)).toThrow(RangeError);
  }
  expect(() => encodeFrame({}, new Uint8Array(BODY_LIMIT_BYTES + 1))).toThrow(RangeError);
});

test("a header that is no JSON is refused", () => {
  expect(() => new FrameReader().push(Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0x7b]))).toThrow(SyntaxError);
});
