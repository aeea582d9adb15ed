// Typed arrays out of raw tensors and back. Values are copied unless the tensor has a buffer of its own: inside a file it
// may lie unaligned.
import { InputError, InvariantError } from "../failure/errors.ts";
import { PIECE_BYTES } from "../files/content.ts";
import type { RawTensor, SafetensorsFile, TensorDType, TensorSource } from "./format.ts";

type ArrayOf = {
  F64: Float64Array;
  F32: Float32Array;
  I64: BigInt64Array;
  I32: Int32Array;
  U16: Uint16Array;
  U8: Uint8Array;
};
export type PlainDType = keyof ArrayOf;

const CONSTRUCTOR: { [D in PlainDType]: new (buffer: ArrayBufferLike) => ArrayOf[D] } = {
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
  return arrayOf(requireTensor(file, name), name, dtype);
}

/** The values of a tensor, which must be of `dtype`. @throws InputError when it is of another type */
export function arrayOf<D extends PlainDType>(
  tensor: RawTensor,
  name: string,
  dtype: D,
): { readonly data: ArrayOf[D]; readonly shape: readonly number[] } {
  if (tensor.dtype !== dtype)
    throw new InputError({
      what: `tensor ${name} has the wrong type`,
      expected: `expected ${dtype}, got ${tensor.dtype}`,
    });
  return { data: toArray(tensor, dtype), shape: tensor.shape };
}

/** Any floating-point tensor widened to (or rounded to) single precision. */
export function tensorFloats(
  file: SafetensorsFile,
  name: string,
): { readonly data: Float32Array; readonly shape: readonly number[] } {
  return floatsOf(requireTensor(file, name), name);
}

/** Any floating-point tensor in single precision. @throws InputError for other types */
export function floatsOf(
  tensor: RawTensor,
  name: string,
): { readonly data: Float32Array; readonly shape: readonly number[] } {
  const { dtype, shape } = tensor;
  if (dtype === "F32") return { data: toArray(tensor, dtype), shape };
  if (dtype === "F64") return { data: Float32Array.from(toArray(tensor, dtype)), shape };
  if (dtype === "BF16") return { data: fromBf16(new Uint16Array(ownBuffer(tensor.bytes))), shape };
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

/** A tensor that is rounded to bfloat16 piece by piece while it is written. */
export function bf16Source(shape: readonly number[], values: Float32Array): TensorSource {
  return { dtype: "BF16", shape, pieces: () => bf16Pieces(values) };
}

function* bf16Pieces(values: Float32Array): Generator<Uint8Array> {
  const step = PIECE_BYTES / 2;
  for (let start = 0; start < values.length; start += step)
    yield new Uint8Array(toBf16(values.subarray(start, start + step)).buffer);
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

function toArray<D extends PlainDType & TensorDType>({ bytes }: RawTensor, dtype: D): ArrayOf[D] {
  return new CONSTRUCTOR[dtype](ownBuffer(bytes));
}

/** `slice` would not do as a copy: on a Buffer it is a view of the whole file. */
function ownBuffer(bytes: Uint8Array): ArrayBufferLike {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : new Uint8Array(bytes).buffer;
}
