// The entries of an untrusted tar archive with their places in it, so that some can be cut out and the rest handed on
// byte for byte: what a sandbox left is compared with its image, and carried into another, without unpacking it here.
// Reads what GNU tar writes as `--format=posix` and tar-stream packs (POSIX pax, "pax Interchange Format").
import { InputError } from "../failure/errors.ts";

export interface TarEntry {
  /** Below the archived folder, without `.//` in front and `/` behind; empty for the folder itself. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "hard-link" | "other";
  /** Permission bits. */
  readonly mode: number;
  /** Seconds; with its fraction where the archive has one. */
  readonly mtime: number;
  /** Content of a plain file; its holes are left out when it has some. */
  readonly content: Uint8Array;
  readonly isSparse: boolean;
  /** Of links: their target. Of hard links: path of the entry that holds the content. */
  readonly target: string;
  /** A character device 0/0: what an overlay puts in the place of something deleted. */
  readonly isWhiteout: boolean;
  /** An overlay's folder that hides what the image has below it. */
  readonly isOpaque: boolean;
  /** All of its blocks in the archive. */
  readonly blocks: Uint8Array;
}

const BLOCK = 512;
const TYPES: Readonly<Record<string, TarEntry["kind"]>> = {
  "": "file",
  "0": "file",
  "1": "hard-link",
  "2": "link",
  "5": "folder",
  "7": "file",
};
const OPAQUE_RECORD = "SCHILY.xattr.user.overlay.opaque";

/** @throws InputError for what is no whole archive */
export function readTarEntries(tar: Uint8Array): readonly TarEntry[] {
  const bytes = Buffer.from(tar.buffer, tar.byteOffset, tar.byteLength);
  const entries: TarEntry[] = [];
  let records = new Map<string, string>();
  let start = 0;
  for (let at = 0; at + BLOCK <= bytes.length; ) {
    const header = bytes.subarray(at, at + BLOCK);
    if (header[0] === 0) return entries; // the end: empty blocks
    const type = text(header, 156, 1);
    const declared = type === "x" || type === "g" ? undefined : records.get("size");
    const size = declared === undefined ? octal(header, 124, 12) : Number(declared);
    const dataStart = at + BLOCK;
    const dataEnd = dataStart + size;
    at = dataStart + Math.ceil(size / BLOCK) * BLOCK;
    if (!Number.isSafeInteger(size) || size < 0 || at > bytes.length) break;
    const content = bytes.subarray(dataStart, dataEnd);
    if (type === "g") start = at;
    else if (type === "x") records = paxRecords(content);
    else {
      entries.push(entryOf(header, type, { records, content, blocks: bytes.subarray(start, at) }));
      records = new Map();
      start = at;
    }
  }
  throw new InputError({ what: "not a whole tar archive", where: `${bytes.length} bytes` });
}

/** An archive of these entries, in this order. */
export function joinTarEntries(entries: readonly TarEntry[]): Uint8Array {
  return new Uint8Array(Buffer.concat([...entries.map(entry => entry.blocks), Buffer.alloc(2 * BLOCK)]));
}

function entryOf(
  header: Buffer,
  type: string,
  rest: {
    readonly records: ReadonlyMap<string, string>;
    readonly content: Uint8Array;
    readonly blocks: Uint8Array;
  },
): TarEntry {
  const { records, content, blocks } = rest;
  // GNU's old headers have times where POSIX has the front part of a long name.
  const isPosix = text(header, 257, 6) === "ustar" && header[263] === 0x30;
  const front = isPosix ? text(header, 345, 155) : "";
  const name = text(header, 0, 100);
  const path = records.get("GNU.sparse.name") ?? records.get("path") ?? (front ? `${front}/${name}` : name);
  const isDevice = type === "3" || type === "4";
  return {
    path: plainPath(path),
    kind: TYPES[type] ?? "other",
    mode: octal(header, 100, 8) & 0o7777,
    mtime: Number(records.get("mtime") ?? octal(header, 136, 12)),
    content,
    isSparse: [...records.keys()].some(key => key.startsWith("GNU.sparse.")),
    target: type === "1" || type === "2" ? linkTarget(type, header, records) : "",
    isWhiteout: isDevice && octal(header, 329, 8) === 0 && octal(header, 337, 8) === 0,
    isOpaque: records.get(OPAQUE_RECORD) === "y",
    blocks,
  };
}

function linkTarget(type: string, header: Buffer, records: ReadonlyMap<string, string>): string {
  const target = records.get("linkpath") ?? text(header, 157, 100);
  return type === "1" ? plainPath(target) : target;
}

function plainPath(path: string): string {
  return path
    .replace(/^(?:\.?\/+)+/, "")
    .replace(/\/+$/, "")
    .replace(/^\.$/, "");
}

/** Of "length key=value\n" each; the length counts itself. */
function paxRecords(content: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < content.length; ) {
    const space = content.indexOf(0x20, at);
    const length = Number(content.toString("latin1", at, space));
    const equals = content.indexOf(0x3d, space);
    if (space < 0 || equals < 0 || !Number.isSafeInteger(length) || length <= 0) break;
    records.set(
      content.toString("utf8", space + 1, equals),
      content.toString("utf8", equals + 1, at + length - 1),
    );
    at += length;
  }
  return records;
}

function text(header: Buffer, at: number, length: number): string {
  const field = header.subarray(at, at + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? length : end);
}

/** Octal digits, or, with the first bit set, a big-endian number (GNU's base-256). */
function octal(header: Buffer, at: number, length: number): number {
  if (((header[at] ?? 0) & 0x80) !== 0) {
    const digits = header.subarray(at + 1, at + length);
    return digits.reduce((number, byte) => number * 256 + byte, 0);
  }
  const digits = text(header, at, length).trim();
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}
