// A folder of objects that counts as a whole: a policy, a critic, an optimizer. Its manifest lists every file with its
// hash and is written last; without it the folder is what a dead writer left, and may be written anew.
import { createHash } from "node:crypto";
import { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
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

export const Manifest = z.strictObject({ files: z.array(ManifestFile).min(1) });
export type Manifest = z.infer<typeof Manifest>;

/** Of a folder that counts only when this object is there: a policy, a critic, an optimizer. */
export function manifestKey(folder: string): string {
  if (!folder.endsWith("/")) throw new InvariantError("a folder's prefix ends in a slash", { folder });
  return `${folder}manifest.json`;
}

/** A file to be written; made one after the other, so that only one has to be in memory. */
export interface FolderFile {
  readonly path: string;
  readonly body: Uint8Array | string;
}

/**
 * Writes the files and then the manifest. Run again it passes when the bytes are equal; files without a manifest are
 * replaced, since a trainer on a GPU may not repeat itself bit by bit after it died half-way.
 *
 * @param folder prefix that ends in a slash; only one writer at a time may have it (the owner of the run)
 * @throws InvariantError when the folder already counts and its manifest says otherwise; then nothing is written
 */
export async function writeFolder(
  store: ObjectStore,
  folder: string,
  files: Iterable<FolderFile> | AsyncIterable<FolderFile>,
): Promise<Manifest> {
  const isWhole = (await store.head(manifestKey(folder))) !== undefined;
  const written: ManifestFile[] = [];
  for await (const { path, body } of files) {
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const file = { path, sizeBytes: bytes.length, sha256: sha256(bytes) };
    if (written.some(other => other.path === path) || folder + path === manifestKey(folder))
      throw new InvariantError("a folder would hold two files of one name", { folder, path });
    if (!isWhole) await replace(store, folder + path, bytes);
    written.push(file);
  }
  if (written.length === 0)
    throw new InvariantError("a folder without files would count as whole", { folder });
  const manifest = { files: written.sort((a, b) => (a.path < b.path ? -1 : 1)) };
  await putOnce(store, manifestKey(folder), encodeJson(manifest));
  return manifest;
}

/** @returns undefined when the folder does not count (yet) @throws InputError when the manifest is corrupt */
export async function readManifest(store: ObjectStore, folder: string): Promise<Manifest | undefined> {
  const key = manifestKey(folder);
  const found = await store.get(key);
  return found === undefined ? undefined : parseJson(found.body, key, Manifest);
}

/** One file of a folder, whole and checked. @throws InputError when it is missing or differs from the manifest */
export async function readFolderFile(
  store: ObjectStore,
  folder: string,
  manifest: Manifest,
  path: string,
): Promise<Uint8Array> {
  const file = manifest.files.find(other => other.path === path);
  if (file === undefined)
    throw new InputError({
      what: "missing file",
      where: folder + path,
      expected: `expected it in the manifest, which lists ${manifest.files.map(({ path }) => path).join(", ")}`,
    });
  const found = await store.get(folder + path);
  if (found === undefined) throw corrupt(folder, file, "no such object");
  assertSame(folder, file, { sizeBytes: found.sizeBytes, sha256: sha256(found.body) });
  return found.body;
}

/** Checks every file of a folder without holding one in memory. @throws InputError for the first that differs */
export async function verifyFolder(store: ObjectStore, folder: string, manifest: Manifest): Promise<void> {
  for (const file of manifest.files) {
    const key = folder + file.path;
    if ((await store.head(key)) === undefined) throw corrupt(folder, file, "no such object");
    assertSame(folder, file, await hashOf(store, key));
  }
}

interface Content {
  readonly sizeBytes: number;
  readonly sha256: string;
}

async function hashOf(store: ObjectStore, key: string): Promise<Content> {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  for await (const chunk of store.stream(key)) {
    hash.update(chunk);
    sizeBytes += chunk.length;
  }
  return { sizeBytes, sha256: hash.digest("hex") };
}

function assertSame(folder: string, file: ManifestFile, got: Content): void {
  if (got.sizeBytes !== file.sizeBytes || got.sha256 !== file.sha256) throw corrupt(folder, file, show(got));
}

function corrupt(folder: string, file: ManifestFile, got: string): InputError {
  return new InputError({
    what: "corrupt checkpoint",
    where: folder + file.path,
    expected: `expected ${show(file)}, got ${got}`,
    fix: "restore the folder from a copy, or go back to an earlier version",
  });
}

function show({ sizeBytes, sha256 }: Content): string {
  return `${sizeBytes} bytes with SHA-256 ${sha256}`;
}

async function replace(store: ObjectStore, key: string, bytes: Uint8Array): Promise<void> {
  const free = await store.put(key, bytes, { ifNoneMatch: "*" });
  if (free.written) return;
  const old = await store.get(key);
  if (old !== undefined && Buffer.compare(old.body, bytes) === 0) return;
  await store.delete(key);
  await putOnce(store, key, bytes);
}
