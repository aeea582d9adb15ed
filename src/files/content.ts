// Content that may be larger than memory, and named sets of it: a folder of this machine, a folder of a store, or files
// that were just made. Node refuses 2 GiB in a single call (read, write, hash), so all content moves in pieces.
import { InvariantError } from "../failure/errors.ts";

/** Largest piece that is written, read or hashed at once; it blocks the event loop for a few milliseconds. */
export const PIECE_BYTES = 4 * 1024 * 1024;

/** Content that is produced piece by piece. Each call of `pieces` starts at the beginning, so a write can be retried. */
export interface ByteSource {
  readonly sizeBytes: number;
  pieces(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

export type Content = Uint8Array | string | ByteSource;

/** Files that belong together, such as a model in the layout of Hugging Face. Reading a file that is missing throws. */
export interface FileSet {
  /** Where the files lie, for messages. Ends in a slash. */
  readonly where: string;
  readonly names: readonly string[];
  /** A whole file in memory, for small ones. */
  read(name: string): Promise<Uint8Array>;
  source(name: string): ByteSource;
}

export interface NamedContent {
  /** Relative to the set it belongs to. */
  readonly path: string;
  readonly body: Content;
}

export function toSource(body: Content): ByteSource {
  if (typeof body === "string") return toSource(Buffer.from(body));
  if (!(body instanceof Uint8Array)) {
    if (typeof body.pieces === "function") return body;
    throw new InvariantError("content is neither bytes, text nor a source", { body: String(body) });
  }
  return { sizeBytes: body.length, pieces: () => cut(body) };
}

/** The same bytes in pieces of at most `PIECE_BYTES`, without copying. */
export function* cut(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += PIECE_BYTES)
    yield bytes.subarray(start, start + PIECE_BYTES);
}

/** All pieces in one array. @throws InvariantError when they are more or fewer bytes than the source said */
export async function readWhole(source: ByteSource): Promise<Uint8Array> {
  // Not a slice of Node's shared pool: the buffer belongs to this content alone.
  const { sizeBytes } = source;
  const whole = Buffer.allocUnsafeSlow(sizeBytes);
  let at = 0;
  for await (const piece of source.pieces()) {
    if (at + piece.length <= sizeBytes) whole.set(piece, at);
    at += piece.length;
  }
  assertSize(sizeBytes, at);
  return whole;
}

/** @throws InvariantError when a source gave more or fewer bytes than it said */
export function assertSize(sizeBytes: number, got: number): void {
  if (got !== sizeBytes)
    throw new InvariantError("content has another size than it said", { sizeBytes, got });
}

/** Files that were made by this process. */
export function filesInMemory(where: string, files: Iterable<NamedContent>): FileSet {
  const sources = new Map(Array.from(files, ({ path, body }) => [path, toSource(body)]));
  const source = (name: string): ByteSource => {
    const found = sources.get(name);
    if (found === undefined) throw new InvariantError("no such file was made", { where, name });
    return found;
  };
  return { where, names: [...sources.keys()], source, read: async name => readWhole(source(name)) };
}

/** The files whose names begin with `folder`, which ends in a slash, under the rest of their names. */
export function filesBelow(files: FileSet, folder: string): FileSet {
  return {
    where: files.where + folder,
    names: files.names.filter(name => name.startsWith(folder)).map(name => name.slice(folder.length)),
    read: name => files.read(folder + name),
    source: name => files.source(folder + name),
  };
}
