// Typed arrays out of raw tensors and back. Values are copied, since a tensor inside a file may lie unaligned.
import { InputError, InvariantError } from "../failure/errors.ts";
import type { RawTensor, SafetensorsFile, TensorDType } from "./format.ts";

type ArrayOf = {
  F64: Float64Array;
  F32: Float32Array;
  I64: BigInt64Array;
  I32: Int32Array;
  U16: Uint16Array;
  U8: Uint8Array;
};
export type PlainDType = keyof ArrayOf;

const CONSTRUCTOR: { [D in PlainDType]: new (buffer: ArrayBuffer) => ArrayOf[D] } = {
  F64: Float64Array,
  F32: Float32Array,
  I64: BigInt64Array,
  I32: Int32Array,
  U16: Uint16Array,
  U8: Uint8Array,
};

/** The tensor `name` of a file, which must be of `dtype`. @throws InputError when it is missing or of another type */
export function tensorArray<D extends PlainDType>(
  file: SafetensorsFile,
  name: string,
  dtype: D,
): { readonly data: ArrayOf[D]; readonly shape: readonly number[] } {
  const tensor = requireTensor(file, name);
  if (tensor.dtype !== dtype)
    throw new InputError({
      what: `tensor ${name} has the wrong type`,
      expected: `expected ${dtype}, got ${tensor.dtype}`,
    });
  return { data: copyArray(tensor, dtype), shape: tensor.shape };
}

/** Any floating-point tensor widened to (or rounded to) single precision. */
export function tensorFloats(
  file: SafetensorsFile,
  name: string,
): { readonly data: Float32Array; readonly shape: readonly number[] } {
  const tensor = requireTensor(file, name);
  const { dtype, shape } = tensor;
  if (dtype === "F32") return { data: copyArray(tensor, dtype), shape };
  if (dtype === "F64") return { data: Float32Array.from(copyArray(tensor, dtype)), shape };
  if (dtype === "BF16") return { data: fromBf16(new Uint16Array(copyBytes(tensor.bytes))), shape };
  throw new InputError({
    what: `tensor ${name} has the wrong type`,
    expected: `expected F32, F64 or BF16, got ${dtype}`,
  });
}

export function rawTensor(dtype: PlainDType, shape: readonly number[], data: ArrayOf[PlainDType]): RawTensor {
  if (!(data instanceof CONSTRUCTOR[dtype]))
    throw new InvariantError("array does not fit the type", { dtype });
  return { dtype, shape, bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
}

export function rawBf16(shape: readonly number[], values: Float32Array): RawTensor {
  return { dtype: "BF16", shape, bytes: new Uint8Array(toBf16(values).buffer) };
}

/** bfloat16 is the upper half of a single; widening is exact. */
export function fromBf16(halves: Uint16Array): Float32Array {
  const bits = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i++) bits[i] = halves[i] << 16;
  return new Float32Array(bits.buffer);
}

/** Rounds to nearest, ties to even; NaN stays NaN. */
export function toBf16(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(values.length);
  for (let i = 0; i < bits.length; i++) {
    const notANumber = (bits[i] & 0x7fffffff) > 0x7f800000;
    halves[i] = notANumber ? (bits[i] >>> 16) | 0x40 : (bits[i] + 0x7fff + ((bits[i] >>> 16) & 1)) >>> 16;
  }
  return halves;
}

function requireTensor(file: SafetensorsFile, name: string): RawTensor {
  const tensor = file.tensors.get(name);
  if (tensor === undefined)
    throw new InputError({
      what: `tensor ${name} is missing`,
      expected: `one of ${[...file.tensors.keys()].slice(0, 20).join(", ")}`,
    });
  return tensor;
}

function copyArray<D extends PlainDType & TensorDType>({ bytes }: RawTensor, dtype: D): ArrayOf[D] {
  return new CONSTRUCTOR[dtype](copyBytes(bytes));
}

/** A copy of exactly these bytes. `slice` would not do: on a Buffer it is a view of the whole file. */
function copyBytes(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
