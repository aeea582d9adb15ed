import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InputError } from "../failure/errors.ts";
import { decodeSafetensors, encodeSafetensors, type RawTensor } from "./format.ts";
import { fromBf16, rawTensor, tensorArray, tensorFloats, toBf16 } from "./numbers.ts";

const shape = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 });
const sizeOf = (dims: readonly number[]): number => dims.reduce((product, dim) => product * dim, 1);
const tensor: fc.Arbitrary<RawTensor> = fc.oneof(
  shape.chain(dims =>
    fc
      .float32Array({ minLength: sizeOf(dims), maxLength: sizeOf(dims) })
      .map(data => rawTensor("F32", dims, data)),
  ),
  shape.chain(dims =>
    fc
      .uint8Array({ minLength: sizeOf(dims), maxLength: sizeOf(dims) })
      .map(data => rawTensor("U8", dims, data)),
  ),
  shape.chain(dims =>
    fc
      .int32Array({ minLength: sizeOf(dims), maxLength: sizeOf(dims) })
      .map(data => rawTensor("I32", dims, data)),
  ),
);
const name = fc
  .string({ minLength: 1, maxLength: 8 })
  .filter(text => text !== "__metadata__" && text !== "__proto__");
const plain = ({ dtype, shape: dims, bytes }: RawTensor) => ({ dtype, shape: dims, bytes: [...bytes] });

describe("safetensors", () => {
  it("gives back what was written", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(name, tensor), { selector: ([key]) => key, maxLength: 4 }),
        fc.dictionary(name, fc.string()),
        (tensors, metadata) => {
          const file = decodeSafetensors(encodeSafetensors(tensors, metadata), "x");
          expect(new Map([...file.tensors].map(([key, value]) => [key, plain(value)]))).toEqual(
            new Map(tensors.map(([key, value]) => [key, plain(value)])),
          );
          expect({ ...file.metadata }).toEqual({ ...metadata });
        },
      ),
    );
  });

  it("reads an empty tensor before another whose name JSON sorts first", () => {
    const tensors = [
      [" ", rawTensor("U8", [0], new Uint8Array())],
      ["0", rawTensor("I32", [], Int32Array.of(7))],
    ] as const;
    const file = decodeSafetensors(encodeSafetensors(tensors, {}), "x");
    expect(file.tensors.get("0")?.bytes).toEqual(Uint8Array.of(7, 0, 0, 0));
  });

  it("refuses every file that was cut off, and one with bytes behind its end", () => {
    const file = encodeSafetensors([["a", rawTensor("F32", [3], Float32Array.of(1, 2, 3))]], {
      format: "pt",
    });
    for (let length = 0; length < file.length; length++)
      expect(() => decodeSafetensors(file.subarray(0, length), "x"), `${length}`).toThrow(InputError);
    expect(() => decodeSafetensors(new Uint8Array([...file, 0]), "x")).toThrow(
      "not a whole safetensors file",
    );
  });

  it("reads a tensor out of the middle of a Buffer, which is one pool with others", () => {
    const file = encodeSafetensors([
      ["a", rawTensor("U8", [1], Uint8Array.of(9))],
      ["b", rawTensor("F32", [2], Float32Array.of(1.5, -2))],
    ]);
    const pooled = Buffer.concat([Buffer.from("xyz"), file]).subarray(3);
    expect([...tensorArray(decodeSafetensors(pooled, "x"), "b", "F32").data]).toEqual([1.5, -2]);
  });

  it("names a missing tensor and a wrong type", () => {
    const file = decodeSafetensors(encodeSafetensors([["a", rawTensor("I32", [1], Int32Array.of(1))]]), "x");
    expect(() => tensorArray(file, "b", "I32")).toThrow("tensor b is missing");
    expect(() => tensorFloats(file, "a")).toThrow("expected F32, F64 or BF16, got I32");
  });
});

describe("bfloat16", () => {
  // By hand: 8 significant bits, round to nearest, ties to even.
  it.each([
    [1, 1],
    [1.00390625, 1], // half-way: to even
    [1.01171875, 1.015625], // half-way: to even
    [3.14159274, 3.140625],
    [-65504, -65536],
    [1e-40, 2 ** -133], // subnormal: the smallest step
    [3.4e38, Number.POSITIVE_INFINITY],
    [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY],
  ])("rounds %d to %d", (value, rounded) => {
    const [found] = fromBf16(toBf16(Float32Array.of(value)));
    if (Number.isFinite(rounded))
      expect(Math.abs(found - rounded)).toBeLessThanOrEqual(Math.abs(rounded) * 1e-4);
    else expect(found).toBe(rounded);
  });

  it("keeps NaN, zeros' signs and everything that is a bfloat16 already", () => {
    expect(fromBf16(toBf16(Float32Array.of(Number.NaN)))[0]).toBeNaN();
    expect(Object.is(fromBf16(toBf16(Float32Array.of(-0)))[0], -0)).toBe(true);
    fc.assert(
      fc.property(fc.float({ noNaN: true }), value => {
        const once = fromBf16(toBf16(Float32Array.of(value)));
        expect(fromBf16(toBf16(once))).toEqual(once);
      }),
    );
  });
});
