// Packs what a folder of the sandbox holds, piece by piece, so that no archive has to fit into memory.
import { constants, lstatSync, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { type Pack, pack } from "tar-stream";
import { pathOfText, readNames, readTarget } from "./path-text.ts";
import { Refusal, reasonOf } from "./refusal.ts";
import { namedHeader } from "./tar-names.ts";

const READ_BYTES = 1 << 20;

export interface PackOptions {
  /** Absolute paths to pack, each by itself and under its own name below the folder; all of the folder when not given. */
  readonly paths?: readonly string[] | undefined;
}

/** Owners, modes and times are kept; what is no file, folder or link is left out, as it cannot be carried. */
export class Packing {
  readonly #pieces: AsyncIterator<Buffer>;
  readonly #archive: Pack;
  /** Names of files that have several, by device and number. */
  readonly #linked = new Map<string, string>();

  constructor(folder: string, { paths }: PackOptions) {
    this.#archive = pack();
    this.#pieces = (this.#archive as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
    const filling = paths === undefined ? this.#addFolder(folder, "") : this.#addEach(paths);
    filling.then(
      () => this.#archive.finalize(),
      error => this.#archive.destroy(error instanceof Error ? error : new Error(`${error}`)),
    );
  }

  /**
   * @returns at least one byte, or undefined at the end
   * @throws Refusal for what cannot be read
   */
  async read(bytes: number): Promise<Uint8Array | undefined> {
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    try {
      while (sizeBytes < bytes) {
        const { value, done } = await this.#pieces.next();
        if (done) break;
        pieces.push(value);
        sizeBytes += value.length;
      }
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal(`cannot pack: ${reasonOf(error)}`);
    }
    return pieces.length === 0 ? undefined : Buffer.concat(pieces);
  }

  stop(): void {
    this.#archive.destroy();
  }

  async #addEach(paths: readonly string[]): Promise<void> {
    for (const path of paths) await this.#addEntry(path, path.replace(/^\/+/, ""));
  }

  async #addFolder(folder: string, prefix: string): Promise<void> {
    for (const child of readNames(folder).sort()) {
      const path = join(folder, child);
      const isFolder = await this.#addEntry(path, `${prefix}${child}`);
      if (isFolder) await this.#addFolder(path, `${prefix}${child}/`);
    }
  }

  /** @returns whether it is a folder */
  async #addEntry(path: string, name: string): Promise<boolean> {
    const stats = lstatSync(pathOfText(path), { throwIfNoEntry: false });
    if (stats === undefined) return false; // it is gone since it was listed
    const header = { name, mode: stats.mode & 0o7777, mtime: stats.mtime, uid: stats.uid, gid: stats.gid };
    if (stats.isDirectory())
      this.#archive.entry(namedHeader({ ...header, name: `${name}/`, type: "directory" }));
    else if (stats.isSymbolicLink())
      this.#archive.entry(namedHeader({ ...header, type: "symlink", linkname: readTarget(path) }));
    else if (stats.isFile() && !this.#addHardLink(header, stats)) await this.#addFile(path, header, stats);
    return stats.isDirectory();
  }

  /** @returns whether the file is in the archive already, under another name */
  #addHardLink(header: { readonly name: string }, { dev, ino, nlink }: Stats): boolean {
    if (nlink < 2) return false;
    const first = this.#linked.get(`${dev}:${ino}`);
    if (first === undefined) this.#linked.set(`${dev}:${ino}`, header.name);
    else this.#archive.entry(namedHeader({ ...header, type: "link", linkname: first }));
    return first !== undefined;
  }

  async #addFile(path: string, header: { readonly name: string }, { size }: Stats): Promise<void> {
    // A path that was a file a moment ago may be a link or a pipe by now.
    const file = await open(
      pathOfText(path),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      const entry = this.#archive.entry(namedHeader({ ...header, type: "file", size }));
      const written = new Promise<void>((resolve, reject) => {
        entry.once("error", reject);
        entry.once("close", resolve);
      });
      written.catch(() => undefined);
      for await (const piece of readExactly(file, size))
        if (!entry.write(piece))
          await Promise.race([new Promise<void>(resolve => entry.once("drain", () => resolve())), written]);
      entry.end(undefined);
      await written;
    } finally {
      await file.close();
    }
  }
}

/** As many bytes as the archive was told, though the file shrinks or grows meanwhile. */
async function* readExactly(file: FileHandle, sizeBytes: number): AsyncGenerator<Buffer> {
  for (let left = sizeBytes; left > 0; ) {
    const piece = Buffer.alloc(Math.min(left, READ_BYTES));
    const { bytesRead } = await file.read(piece, 0, piece.length);
    if (bytesRead > 0) yield piece.subarray(0, bytesRead);
    else yield piece; // zeros
    left -= bytesRead > 0 ? bytesRead : piece.length;
  }
}
