// Tar archives on our side of a sandbox. Packing follows no symbolic link; what a sandbox sends back is untrusted, so
// reading never writes to disk and takes only plain files with names below the archived folder.
import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { extract, type Pack, pack } from "tar-stream";
import { InputError } from "../failure/errors.ts";
import type { SandboxFile } from "./sandbox.ts";

/** @returns whether a path of this machine stays out of an archive, with what is below it */
type IsLeftOut = (path: string) => boolean;

/**
 * Packs what a folder holds, in an order that does not depend on the file system. Modes and times are kept, owners are
 * not; symbolic links stay links.
 *
 * @throws InputError for what is neither file, folder nor link
 */
export async function packFolder(folder: string, isLeftOut: IsLeftOut = () => false): Promise<Uint8Array> {
  const archive = pack();
  await addFolder(archive, folder, "", isLeftOut);
  return finish(archive);
}

/**
 * Packs files and folders of this machine under the absolute paths they get inside, without the leading slash.
 *
 * @throws InputError when one is missing, a link or neither file nor folder
 */
export async function packFiles(files: readonly SandboxFile[]): Promise<Uint8Array> {
  const archive = pack();
  for (const { from, to } of files) {
    const stats = lstatSync(from, { throwIfNoEntry: false });
    const name = to.replace(/^\/+/, "").replace(/\/+$/, "");
    if (stats?.isDirectory()) {
      if (name !== "") archive.entry({ name: `${name}/`, type: "directory", ...timeAndMode(stats) });
      await addFolder(archive, from, name === "" ? "" : `${name}/`, () => false);
    } else if (stats?.isFile() && name !== "") {
      archive.entry({ name, ...timeAndMode(stats) }, await readFile(from));
    } else {
      throw new InputError({
        what: stats === undefined ? "a file for the sandbox is missing" : "cannot be copied into a sandbox",
        where: from,
        expected: "a file or a folder, not a link to one, and for a file a destination other than /",
        fix: `put one there, or do not copy it to ${to}`,
      });
    }
  }
  return finish(archive);
}

/**
 * Plain files of an untrusted archive by their path below the archived folder. Links, devices, absolute names and
 * names with `..` are left out; so is everything from the first byte on that is no tar.
 */
export async function readTarFiles(tar: Uint8Array): Promise<ReadonlyMap<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  const reader = extract();
  reader.end(tar);
  try {
    for await (const entry of reader) {
      const chunks: Buffer[] = [];
      for await (const chunk of entry as AsyncIterable<Buffer>) chunks.push(chunk);
      const name = entry.header.name.replace(/^(\.\/+)+/, "");
      if (entry.header.type === "file" && isBelow(name))
        files.set(name, new Uint8Array(Buffer.concat(chunks)));
    }
  } catch {
    // Only a sandbox that tampers with its own archive sends one that breaks off: what came before stays as it is.
  }
  return files;
}

function isBelow(name: string): boolean {
  if (name.startsWith("/") || name.includes("\0")) return false;
  return name.split("/").every(part => part !== "" && part !== "." && part !== "..");
}

async function addFolder(archive: Pack, folder: string, prefix: string, isLeftOut: IsLeftOut): Promise<void> {
  for (const child of readdirSync(folder).sort()) {
    const path = join(folder, child);
    if (isLeftOut(path)) continue;
    const name = `${prefix}${child}`;
    const stats = lstatSync(path);
    if (stats.isDirectory()) {
      archive.entry({ name: `${name}/`, type: "directory", ...timeAndMode(stats) });
      await addFolder(archive, path, `${name}/`, isLeftOut);
    } else if (stats.isSymbolicLink()) {
      archive.entry({ name, type: "symlink", linkname: readlinkSync(path), ...timeAndMode(stats) });
    } else if (stats.isFile()) {
      archive.entry({ name, ...timeAndMode(stats) }, await readFile(path));
    } else {
      throw new InputError({
        what: "neither file, folder nor symbolic link",
        where: path,
        expected: "what a tar archive can carry to another machine",
        fix: "remove it",
      });
    }
  }
}

function timeAndMode({ mode, mtime }: { readonly mode: number; readonly mtime: Date }) {
  return { mode: mode & 0o7777, mtime };
}

async function finish(archive: Pack): Promise<Uint8Array> {
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}
