// COPY and ADD from the build context: which files, where to, and as what archive they travel.
import { createHash } from "node:crypto";
import { closeSync, createReadStream, openSync, readSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { posix } from "node:path";
import { pipeline } from "node:stream/promises";
import { constants, createGunzip, gunzipSync } from "node:zlib";
import { type Pack, pack } from "tar-stream";
import type { BuildContext, ContextEntry } from "./build-context.ts";
import { type Dockerfile, type Heredoc, type Instruction, jsonWords } from "./dockerfile.ts";
import { expandText, type Scope } from "./image-config.ts";
import type { Refuse } from "./refuse.ts";

/** One archive for one folder of the image. */
export interface Placement {
  /** Absolute; made when it is missing, and with `isFile` the place of the one file unless a folder is there. */
  readonly to: string;
  readonly isFile: boolean;
  readonly entries: readonly PlacedEntry[];
  /** An archive of ADD, unpacked there. */
  readonly archive?: string;
}

/** A file, folder or link of the context, or a text. */
interface PlacedEntry {
  /** Below the folder; of a placement with `isFile`, the name it has without another. */
  readonly name: string;
  readonly mode: number;
  readonly from: ContextEntry | { readonly text: string };
}

/** Sources and destination with variables replaced. */
export interface CopyPaths {
  readonly sources: readonly string[];
  readonly heredocs: readonly Heredoc[];
  /** As written; absolute once resolved against the working directory. */
  readonly destination: string;
  readonly isFolder: boolean;
}

/** @throws InputError of `refuse` */
export function readCopyPaths(
  dockerfile: Dockerfile,
  instruction: Instruction,
  scope: Scope,
  refuse: Refuse,
): CopyPaths {
  const { name, text, heredocs } = instruction;
  const raw = jsonWords(text) ?? text.split(/\s+/).filter(word => word !== "");
  const all = raw.map(word =>
    heredocs.some(heredoc => heredoc.word === word)
      ? word
      : expandText(dockerfile, { name, text: word }, scope, refuse),
  );
  const destination = all.at(-1);
  const sources = all.slice(0, -1).filter(source => !heredocs.some(heredoc => heredoc.word === source));
  if (destination === undefined || sources.length + heredocs.length === 0)
    throw refuse(`${name} without source and destination`);
  const isFolder = /(^|\/)\.{0,2}$/.test(destination);
  if (all.length > 2 && !isFolder)
    throw refuse(`${name} of several files to one`, "a destination that ends in /");
  const absolute = posix.resolve(scope.config.workdir, destination);
  return { sources, heredocs, destination: absolute, isFolder };
}

/** `--chmod=755`. @throws InputError of `refuse` */
export function readMode({ name, flags }: Instruction, refuse: Refuse): number | undefined {
  const mode = flags.get("chmod");
  if (mode === undefined) return undefined;
  if (typeof mode === "string" && /^[0-7]{3,4}$/.test(mode)) return Number.parseInt(mode, 8);
  throw refuse(`${name} --chmod=${mode}`, "an octal mode");
}

/** @throws InputError of `refuse` for what the context does not hold */
export function placementsOf(
  dockerfile: Dockerfile,
  instruction: Instruction,
  context: BuildContext,
  scope: Scope,
  refuse: Refuse,
): readonly Placement[] {
  const { name } = instruction;
  const { sources, heredocs, destination, isFolder } = readCopyPaths(dockerfile, instruction, scope, refuse);
  const mode = readMode(instruction, refuse);
  const placements: Placement[] = [];
  for (const source of sources) {
    if (/^([a-z]+:\/\/|git@)/.test(source))
      throw refuse(`${name} of a URL (${source})`, "a file of the context");
    const paths = context.match(source);
    if (paths.length === 0) throw refuse(`${name} of a missing file (${source})`);
    if (paths.length > 1 && !isFolder)
      throw refuse(`${name} of several files to one (${source})`, "a destination that ends in /");
    for (const path of paths) {
      const entry = context.entry(path);
      if (entry === undefined || entry.kind === "other" || entry.kind === "link")
        throw refuse(`${name} of what is no file or folder (${path})`);
      if (entry.kind === "folder") {
        const prefix = path === "" ? "" : `${path}/`;
        const entries = [...context.below(path)].map(from => {
          if (from.kind === "other") throw refuse(`${name} of what is no file or folder (${from.path})`);
          return { name: from.path.slice(prefix.length), mode: mode ?? from.mode, from };
        });
        placements.push({ to: destination, isFile: false, entries });
      } else if (name === "ADD" && isArchive(entry.source)) {
        if (isCompressedOtherwise(entry.source))
          throw refuse(`ADD of an archive compressed by something else than gzip (${path})`);
        placements.push({ to: destination, isFile: false, entries: [], archive: entry.source });
      } else {
        const entries = [{ name: posix.basename(path), mode: mode ?? entry.mode, from: entry }];
        placements.push({ to: destination, isFile: !isFolder, entries });
      }
    }
  }
  for (const heredoc of heredocs) {
    const text = heredoc.isExpanded
      ? expandHeredoc(dockerfile, heredoc.content, scope, refuse)
      : heredoc.content;
    const entries = [{ name: heredoc.name, mode: mode ?? 0o644, from: { text } }];
    placements.push({ to: destination, isFile: !isFolder, entries });
  }
  return placements;
}

/** In a here-document quotes are characters like others. */
function expandHeredoc(dockerfile: Dockerfile, content: string, scope: Scope, refuse: Refuse): string {
  const text = content.replace(/['"]/g, quote => `${dockerfile.escapeCharacter}${quote}`);
  return expandText(dockerfile, { name: "COPY", text }, scope, refuse);
}

/** Hash of everything a layer depends on: contents, names, modes and links, not times. */
export async function hashPlacements(placements: readonly Placement[]): Promise<string> {
  const hash = createHash("sha256");
  for (const { to, isFile, entries, archive } of placements) {
    hash.update(JSON.stringify([to, isFile, archive === undefined ? null : await hashFile(archive)]));
    for (const { name, mode, from } of entries) {
      hash.update(JSON.stringify([name, mode, "text" in from ? ["text", from.text] : from.kind]));
      if ("text" in from) continue;
      if (from.kind === "file") hash.update(await hashFile(from.source));
      if (from.kind === "link") hash.update(JSON.stringify(from.target));
    }
  }
  return hash.digest("hex");
}

/** @param name of the file, for a placement of one file */
export async function packPlacement({ entries, archive }: Placement, name?: string): Promise<Uint8Array> {
  if (archive !== undefined) return readArchive(archive);
  const tar = pack();
  for (const { name: ownName, mode, from } of entries) await addEntry(tar, name ?? ownName, mode, from);
  tar.finalize();
  return collect(tar);
}

async function addEntry(tar: Pack, name: string, mode: number, from: PlacedEntry["from"]): Promise<void> {
  if ("text" in from) {
    tar.entry({ name, mode, mtime: new Date(0) }, from.text);
    return;
  }
  const header = { name, mode, mtime: from.modifiedAt };
  if (from.kind === "folder") tar.entry({ ...header, name: `${name}/`, type: "directory" });
  else if (from.kind === "link") tar.entry({ ...header, type: "symlink", linkname: from.target ?? "" });
  else tar.entry(header, await readFile(from.source));
}

/** Enough of a compressed archive to hold its first block. */
const HEAD_BYTES = 4096;

async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** As Docker has it: by what is in the file, not by its name. */
function isArchive(path: string): boolean {
  const head = readHead(path);
  return isCompressedOtherwise(path) || isTar(isGzip(path) ? decompressHead(head) : head);
}

function decompressHead(head: Buffer): Buffer {
  try {
    return gunzipSync(head, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch {
    return head; // it only begins like one
  }
}

function isGzip(path: string): boolean {
  const [first, second] = readHead(path);
  return first === 0x1f && second === 0x8b;
}

function isCompressedOtherwise(path: string): boolean {
  const head = readHead(path).subarray(0, 6).toString("latin1");
  return head.startsWith("BZh") || head === "\xfd7zXZ\0" || head.startsWith("\x28\xb5\x2f\xfd");
}

/** POSIX and GNU archives say so at offset 257 (ustar). */
function isTar(head: Buffer): boolean {
  return head.subarray(257, 262).toString("latin1") === "ustar";
}

function readHead(path: string): Buffer {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, readSync(file, head));
  } finally {
    closeSync(file);
  }
}

async function readArchive(path: string): Promise<Uint8Array> {
  const bytes = createReadStream(path);
  return collect(isGzip(path) ? bytes.pipe(createGunzip()) : bytes);
}

async function collect(stream: AsyncIterable<unknown>): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return new Uint8Array(Buffer.concat(chunks));
}
