// The safetensors file format (https://github.com/huggingface/safetensors, "Format"): 8 bytes little-endian length of
// a JSON header, the header, then the tensors' bytes. It is self-describing and cannot run code.
import { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";

const DTYPES = { F64: 8, F32: 4, BF16: 2, I64: 8, I32: 4, U16: 2, U8: 1 } as const;
export type TensorDType = keyof typeof DTYPES;

/** Row-major bytes of a tensor, little-endian. */
export interface RawTensor {
  readonly dtype: TensorDType;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export interface SafetensorsFile {
  readonly tensors: ReadonlyMap<string, RawTensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

const Size = z.int().nonnegative();
const Header = z.record(
  z.string(),
  z.union([
    z.object({ dtype: z.string(), shape: z.array(Size), data_offsets: z.tuple([Size, Size]) }),
    z.record(z.string(), z.string()),
  ]),
);

/** Headers above this are refused by the reference implementation too. */
const MAX_HEADER_BYTES = 100_000_000;

/** Tensors in the order given, each aligned to 8 bytes; the header is padded with spaces, as the format allows. */
export function encodeSafetensors(
  tensors: Iterable<readonly [name: string, tensor: RawTensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const header = new Map<string, unknown>();
  if (Object.keys(metadata).length > 0) header.set("__metadata__", metadata);
  const bodies: Uint8Array[] = [];
  let offset = 0;
  for (const [name, { dtype, shape, bytes }] of tensors) {
    const size = shape.reduce((product, dim) => product * dim, 1) * DTYPES[dtype];
    if (bytes.length !== size)
      throw new InvariantError("tensor has another size than its shape", {
        name,
        shape,
        dtype,
        bytes: bytes.length,
      });
    if (header.has(name)) throw new InvariantError("tensor name given twice", { name });
    header.set(name, { dtype, shape, data_offsets: [offset, offset + size] });
    bodies.push(bytes);
    offset += size;
  }
  const json = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const padded = Math.ceil(json.length / 8) * 8;
  const file = new Uint8Array(8 + padded + offset);
  file.fill(0x20, 8, 8 + padded);
  new DataView(file.buffer).setBigUint64(0, BigInt(padded), true);
  file.set(json, 8);
  let at = 8 + padded;
  for (const body of bodies) {
    file.set(body, at);
    at += body.length;
  }
  return file;
}

/**
 * Reads a whole file; tensors are views into `file`.
 *
 * @param name what the file is called in an error
 * @throws InputError when the file is cut off, lies about sizes, or overlaps
 */
export function decodeSafetensors(file: Uint8Array, name: string): SafetensorsFile {
  const refuse = (expected: string): never => {
    throw new InputError({
      what: "not a whole safetensors file",
      where: name,
      expected,
      fix: "restore the file or make it again",
    });
  };
  if (file.length < 8) refuse(`at least 8 bytes, got ${file.length}`);
  const headerBytes = Number(new DataView(file.buffer, file.byteOffset, 8).getBigUint64(0, true));
  if (headerBytes > MAX_HEADER_BYTES || headerBytes > file.length - 8) {
    refuse(`a header of ${headerBytes} bytes, the file has ${file.length - 8} after the length`);
  }
  const header = parseHeader(file.subarray(8, 8 + headerBytes), refuse);
  const data = file.subarray(8 + headerBytes);
  const tensors = new Map<string, RawTensor>();
  let metadata: Record<string, string> = {};
  let end = 0;
  // An empty tensor begins where the next one does, and JSON keys that are numbers come first: the end decides.
  const byOffset = Object.entries(header).sort(
    ([, a], [, b]) => startOf(a) - startOf(b) || endOf(a) - endOf(b),
  );
  for (const [key, entry] of byOffset) {
    if (!isTensorEntry(entry)) {
      if (key === "__metadata__") metadata = entry;
      else refuse(`an entry with dtype, shape and data_offsets for ${key}`);
      continue;
    }
    const {
      dtype,
      shape,
      data_offsets: [start, stop],
    } = entry;
    if (!isDType(dtype))
      return refuse(`${key} of a dtype of ${Object.keys(DTYPES).join(", ")}, got ${dtype}`);
    const size = shape.reduce((product, dim) => product * dim, 1) * DTYPES[dtype];
    if (start !== end || stop - start !== size)
      refuse(`${key} at bytes ${end} to ${end + size}, got ${start} to ${stop}`);
    if (stop > data.length) refuse(`${stop} bytes of tensors, got ${data.length}`);
    tensors.set(key, { dtype, shape, bytes: data.subarray(start, stop) });
    end = stop;
  }
  if (end !== data.length) refuse(`${end} bytes of tensors, got ${data.length}`);
  return { tensors, metadata };
}

type Entry = z.infer<typeof Header>[string];

function parseHeader(bytes: Uint8Array, refuse: (expected: string) => never): z.infer<typeof Header> {
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return refuse("a header in JSON");
  }
  const parsed = Header.safeParse(json);
  return parsed.success ? parsed.data : refuse("a header that maps names to dtype, shape and data_offsets");
}

function isTensorEntry(
  entry: Entry,
): entry is { dtype: string; shape: number[]; data_offsets: [number, number] } {
  return Array.isArray(entry.data_offsets);
}

function startOf(entry: Entry): number {
  return isTensorEntry(entry) ? entry.data_offsets[0] : -1;
}

function endOf(entry: Entry): number {
  return isTensorEntry(entry) ? entry.data_offsets[1] : -1;
}

function isDType(name: string): name is TensorDType {
  return name in DTYPES;
}
