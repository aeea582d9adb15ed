// The safetensors file format (https://github.com/huggingface/safetensors, "Format"): 8 bytes little-endian length of
// a JSON header, the header, then the tensors' bytes. It is self-describing and cannot run code. Files are written and
// read tensor by tensor, because a checkpoint can be larger than memory.
import { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";
import { type ByteSource, cut } from "../files/content.ts";

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

/** A tensor that is written piece by piece. */
export interface TensorSource {
  readonly dtype: TensorDType;
  readonly shape: readonly number[];
  /** Its row-major bytes, little-endian, from the beginning on each call. */
  pieces(): Iterable<Uint8Array>;
}

type NamedTensor = readonly [name: string, tensor: RawTensor | TensorSource];

/** Tensors in the order given, each aligned to 8 bytes; the header is padded with spaces, as the format allows. */
export function safetensorsSource(
  tensors: Iterable<NamedTensor>,
  metadata: Readonly<Record<string, string>> = {},
): ByteSource {
  const list = [...tensors];
  const header = new Map<string, unknown>();
  if (Object.keys(metadata).length > 0) header.set("__metadata__", metadata);
  let offset = 0;
  for (const [name, { dtype, shape }] of list) {
    if (header.has(name)) throw new InvariantError("tensor name given twice", { name });
    const end = offset + sizeOf(dtype, shape);
    header.set(name, { dtype, shape, data_offsets: [offset, end] });
    offset = end;
  }
  const json = Buffer.from(JSON.stringify(Object.fromEntries(header)));
  const padded = Math.ceil(json.length / 8) * 8;
  const start = new Uint8Array(8 + padded).fill(0x20);
  new DataView(start.buffer).setBigUint64(0, BigInt(padded), true);
  start.set(json, 8);
  return { sizeBytes: start.length + offset, pieces: () => concatPieces(start, list) };
}

function* concatPieces(start: Uint8Array, tensors: readonly NamedTensor[]): Generator<Uint8Array> {
  yield start;
  for (const [name, tensor] of tensors) {
    let bytes = 0;
    for (const piece of "bytes" in tensor ? cut(tensor.bytes) : tensor.pieces()) {
      bytes += piece.length;
      yield piece;
    }
    const { dtype, shape } = tensor;
    if (bytes !== sizeOf(dtype, shape))
      throw new InvariantError("tensor has another size than its shape", { name, shape, dtype, bytes });
  }
}

/** A whole small file in memory. */
export function encodeSafetensors(
  tensors: Iterable<NamedTensor>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const { sizeBytes, pieces } = safetensorsSource(tensors, metadata);
  const file = new Uint8Array(sizeBytes);
  let at = 0;
  for (const piece of pieces() as Iterable<Uint8Array>) {
    file.set(piece, at);
    at += piece.length;
  }
  return file;
}

/**
 * Reads a whole small file; tensors are views into `file`.
 *
 * @param name what the file is called in an error
 * @throws InputError when the file is cut off, lies about sizes, or overlaps
 */
export function decodeSafetensors(file: Uint8Array, name: string): SafetensorsFile {
  const refuse = refusal(name);
  if (file.length < 8) throw refuse(`at least 8 bytes, got ${file.length}`);
  const headerBytes = headerLength(file, file.length, refuse);
  const data = file.subarray(8 + headerBytes);
  const { metadata, places } = parseHeader(file.subarray(8, 8 + headerBytes), data.length, refuse);
  const tensors = new Map(
    places.map(({ name: key, dtype, shape, start, end }): [string, RawTensor] => [
      key,
      { dtype, shape, bytes: data.subarray(start, end) },
    ]),
  );
  return { tensors, metadata };
}

/** A file that is read from its beginning to its end. Its header is read first. */
export interface SafetensorsReader {
  readonly metadata: Readonly<Record<string, string>>;
  /** Every tensor in the order of the file, one in memory at a time, each with a buffer of its own. May be called once. */
  tensors(): AsyncGenerator<readonly [name: string, tensor: RawTensor]>;
}

/** @throws InputError as `decodeSafetensors`; whatever the source throws at its end comes before it */
export async function openSafetensors(source: ByteSource, name: string): Promise<SafetensorsReader> {
  const refuse = refusal(name);
  const reader = new PieceReader(source, refuse);
  try {
    const headerBytes = headerLength(await reader.take(8), source.sizeBytes, refuse);
    const header = parseHeader(await reader.take(headerBytes), source.sizeBytes - 8 - headerBytes, refuse);
    return { metadata: header.metadata, tensors: () => readTensors(reader, header.places) };
  } catch (error) {
    await reader.drain(); // a source that checks itself says better what is wrong
    throw error;
  }
}

async function* readTensors(reader: PieceReader, places: readonly TensorPlace[]) {
  try {
    for (const { name, dtype, shape, start, end } of places)
      yield [name, { dtype, shape, bytes: await reader.take(end - start) }] as const;
    await reader.drain();
  } finally {
    await reader.close();
  }
}

class PieceReader {
  readonly #pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  readonly #refuse: Refuse;
  #rest: Uint8Array = new Uint8Array();

  constructor(source: ByteSource, refuse: Refuse) {
    const pieces = source.pieces();
    this.#pieces =
      Symbol.asyncIterator in pieces ? pieces[Symbol.asyncIterator]() : pieces[Symbol.iterator]();
    this.#refuse = refuse;
  }

  /** The next `count` bytes in a buffer of their own. */
  async take(count: number): Promise<Uint8Array> {
    const taken = new Uint8Array(count);
    for (let at = 0; at < count; ) {
      if (this.#rest.length === 0) {
        const next = await this.#pieces.next();
        if (next.done) throw this.#refuse(`${count} bytes, got ${at}`);
        this.#rest = next.value;
      }
      const part = this.#rest.subarray(0, count - at);
      taken.set(part, at);
      at += part.length;
      this.#rest = this.#rest.subarray(part.length);
    }
    return taken;
  }

  /** Reads to the end, where a source tells that it was not what it should be. */
  async drain(): Promise<void> {
    while (!(await this.#pieces.next()).done);
  }

  async close(): Promise<void> {
    await this.#pieces.return?.();
  }
}

type Refuse = (expected: string) => InputError;

function refusal(where: string): Refuse {
  return expected =>
    new InputError({
      what: "not a whole safetensors file",
      where,
      expected,
      fix: "restore the file or make it again",
    });
}

function headerLength(start: Uint8Array, fileBytes: number, refuse: Refuse): number {
  const bytes = Number(new DataView(start.buffer, start.byteOffset, 8).getBigUint64(0, true));
  if (bytes > MAX_HEADER_BYTES || bytes > fileBytes - 8)
    throw refuse(`a header of ${bytes} bytes, the file has ${fileBytes - 8} after the length`);
  return bytes;
}

/** Where a tensor lies, in bytes behind the header. */
interface TensorPlace {
  readonly name: string;
  readonly dtype: TensorDType;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

function parseHeader(bytes: Uint8Array, dataBytes: number, refuse: Refuse) {
  const places: TensorPlace[] = [];
  let metadata: Record<string, string> = {};
  let at = 0;
  // An empty tensor begins where the next one does, and JSON keys that are numbers come first: the end decides.
  const byOffset = Object.entries(parseHeaderJson(bytes, refuse)).sort(
    ([, a], [, b]) => startOf(a) - startOf(b) || endOf(a) - endOf(b),
  );
  for (const [name, entry] of byOffset) {
    if (!isTensorEntry(entry)) {
      if (name !== "__metadata__") throw refuse(`an entry with dtype, shape and data_offsets for ${name}`);
      metadata = entry;
      continue;
    }
    const {
      dtype,
      shape,
      data_offsets: [start, end],
    } = entry;
    if (!isDType(dtype))
      throw refuse(`${name} of a dtype of ${Object.keys(DTYPES).join(", ")}, got ${dtype}`);
    const size = sizeOf(dtype, shape);
    if (start !== at || end - start !== size)
      throw refuse(`${name} at bytes ${at} to ${at + size}, got ${start} to ${end}`);
    if (end > dataBytes) throw refuse(`${end} bytes of tensors, got ${dataBytes}`);
    places.push({ name, dtype, shape, start, end });
    at = end;
  }
  if (at !== dataBytes) throw refuse(`${at} bytes of tensors, got ${dataBytes}`);
  return { metadata, places };
}

function sizeOf(dtype: TensorDType, shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1) * DTYPES[dtype];
}

type Entry = z.infer<typeof Header>[string];

function parseHeaderJson(bytes: Uint8Array, refuse: Refuse): z.infer<typeof Header> {
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    throw refuse("a header in JSON");
  }
  const parsed = Header.safeParse(json);
  if (!parsed.success) throw refuse("a header that maps names to dtype, shape and data_offsets");
  return parsed.data;
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
