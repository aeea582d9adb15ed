// A folder of objects that counts as a whole, such as a policy. Its manifest lists every file with its hash and is
// written last: without it the folder is what a dead writer left, and is written anew; with it the folder never changes.
import { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";
import { type ByteSource, type FileSet, type NamedContent, readWhole, toSource } from "../files/content.ts";
import { type Digest, digestOf, HashedSource } from "../files/sha256.ts";
import { encodeJson, parseJson } from "./json.ts";
import type { ObjectStore } from "./object-store.ts";
import { putOnce } from "./write-once.ts";

const ManifestFile = z.strictObject({
  /** Relative to the folder. */
  path: z.string().min(1),
  sizeBytes: z.int().nonnegative(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/, "expected 64 hexadecimal digits"),
});
type ManifestFile = z.infer<typeof ManifestFile>;

const Manifest = z.strictObject({ files: z.array(ManifestFile).min(1) });
type Manifest = z.infer<typeof Manifest>;

/** The object that makes a folder count. */
export function manifestKey(folder: string): string {
  if (!folder.endsWith("/")) throw new InvariantError("a folder's prefix ends in a slash", { folder });
  return `${folder}manifest.json`;
}

/** Files to be written. An iterable can make them one after the other, so that not all are in memory. */
export type Contents = Iterable<NamedContent> | AsyncIterable<NamedContent>;

/**
 * Writes the files and then the manifest. A folder that counts already is kept as it is and `files` is not read: a
 * trainer on a GPU may not repeat itself bit by bit, and what others have read must not change. Files without a
 * manifest are replaced.
 *
 * @param prefix ends in a slash; only one writer at a time may have it (the owner of the run)
 */
export async function writeFolder(
  store: ObjectStore,
  prefix: string,
  files: Contents,
): Promise<StoredFolder> {
  const whole = await openFolder(store, prefix);
  if (whole !== undefined) return whole;
  const written: ManifestFile[] = [];
  for await (const { path, body } of files) {
    if (written.some(other => other.path === path) || prefix + path === manifestKey(prefix))
      throw new InvariantError("a folder would hold two files of one name", { prefix, path });
    written.push({ path, ...(await replace(store, prefix + path, toSource(body))) });
  }
  if (written.length === 0)
    throw new InvariantError("a folder without files would count as whole", { prefix });
  const manifest = { files: written.sort((a, b) => (a.path < b.path ? -1 : 1)) };
  await putOnce(store, manifestKey(prefix), encodeJson(manifest));
  return new StoredFolder(store, prefix, manifest);
}

export async function isWhole(store: ObjectStore, prefix: string): Promise<boolean> {
  return (await store.head(manifestKey(prefix))) !== undefined;
}

/** @returns undefined when the folder does not count (yet) @throws InputError when the manifest is corrupt */
export async function openFolder(store: ObjectStore, prefix: string): Promise<StoredFolder | undefined> {
  const key = manifestKey(prefix);
  const found = await store.get(key);
  return found && new StoredFolder(store, prefix, parseJson(found.body, key, Manifest));
}

/** Deletes the manifest first, so that a folder that is half deleted does not count. */
export async function deleteFolder(store: ObjectStore, prefix: string): Promise<void> {
  await store.delete(manifestKey(prefix));
  for await (const { key } of store.list(prefix)) await store.delete(key);
}

/** A folder that counts. Whatever is read to its end is checked: its bytes are those that were written, or it throws. */
export class StoredFolder implements FileSet {
  readonly where: string;
  readonly names: readonly string[];
  readonly #store: ObjectStore;
  readonly #files: ReadonlyMap<string, ManifestFile>;

  constructor(store: ObjectStore, prefix: string, { files }: Manifest) {
    this.where = prefix;
    this.names = files.map(({ path }) => path);
    this.#store = store;
    this.#files = new Map(files.map(file => [file.path, file]));
  }

  /** @throws InputError when the file is missing or differs from the manifest */
  async read(name: string): Promise<Uint8Array> {
    return readWhole(this.source(name));
  }

  /** @throws InputError when the file is not in the manifest; its pieces when they differ from it */
  source(name: string): ByteSource {
    const file = this.#files.get(name);
    if (file === undefined)
      throw new InputError({
        what: "missing file",
        where: this.where + name,
        expected: `expected it in the manifest, which lists ${this.names.join(", ")}`,
      });
    return { sizeBytes: file.sizeBytes, pieces: () => this.#checkedPieces(file) };
  }

  /** Reads every file without holding one in memory. @throws InputError for the first that differs */
  async verify(): Promise<void> {
    for (const file of this.#files.values()) for await (const _ of this.#checkedPieces(file));
  }

  async *#checkedPieces(file: ManifestFile): AsyncGenerator<Uint8Array> {
    const key = this.where + file.path;
    const head = await this.#store.head(key);
    if (head === undefined) throw corrupt(this.where, file, "no such object");
    const content = new HashedSource({ ...head, pieces: () => this.#store.stream(key) });
    // The size first, so that a reader that knows its length meets no other error before this one.
    if (head.sizeBytes === file.sizeBytes) yield* content.pieces();
    const { sizeBytes, sha256 } = content.digest ?? (await digestOf(content.pieces()));
    if (sizeBytes !== file.sizeBytes || sha256 !== file.sha256)
      throw corrupt(this.where, file, show({ sizeBytes, sha256 }));
  }
}

function corrupt(prefix: string, file: ManifestFile, got: string): InputError {
  return new InputError({
    what: "corrupt checkpoint",
    where: prefix + file.path,
    expected: `expected ${show(file)}, got ${got}`,
    fix: "restore the folder from a copy, or go back to an earlier version",
  });
}

function show({ sizeBytes, sha256 }: Digest): string {
  return `${sizeBytes} bytes with SHA-256 ${sha256}`;
}

async function replace(store: ObjectStore, key: string, content: ByteSource): Promise<Digest> {
  const hashed = new HashedSource(content);
  if ((await store.put(key, hashed, { ifNoneMatch: "*" })).written)
    return hashed.digest ?? digestOf(content.pieces());
  const own = await digestOf(content.pieces());
  const there = (await store.head(key)) && (await digestOf(store.stream(key)));
  if (there?.sha256 === own.sha256) return own;
  await store.delete(key);
  await putOnce(store, key, content);
  return own;
}
