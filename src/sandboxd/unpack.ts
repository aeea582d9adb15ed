// Unpacks a tar archive that comes in pieces. Everything happens inside the sandbox, so a link in the archive or in the
// way leads nowhere else.
import {
  chmodSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { extract, type Header } from "tar-stream";
import { makeFolder } from "./folders.ts";
import { pathOfText } from "./path-text.ts";
import { Refusal, reasonOf } from "./refusal.ts";
import { namesOf } from "./tar-names.ts";

export interface UnpackOptions {
  /** Root owns what is unpacked, unless the archive's owners are to be kept. */
  readonly keepOwners: boolean;
  /** All paths that the archive may hold, where who packed it is not trusted; anything when not given. */
  readonly only?: readonly string[] | undefined;
}

export class Unpacking {
  readonly #extract = extract();
  readonly #result: Promise<void>;
  #failure: unknown;

  constructor(folder: string, options: UnpackOptions) {
    this.#result = this.#unpack(folder, options);
    this.#result.catch(error => {
      this.#failure = error;
    });
  }

  /** Resolves when there is room for more. What fails is told at the end. */
  async write(piece: Uint8Array): Promise<void> {
    if (this.#failure !== undefined || this.#extract.destroyed || this.#extract.write(piece)) return;
    await Promise.race([
      new Promise<void>(resolve => this.#extract.once("drain", () => resolve())),
      this.#result.catch(() => undefined),
    ]);
  }

  /** @throws Refusal for what the sandbox does not take */
  async end(): Promise<void> {
    this.#extract.end(undefined);
    await this.#result;
  }

  async #unpack(folder: string, options: UnpackOptions): Promise<void> {
    // Folders get their times and modes last: what is unpacked into them changes the first and may need the second.
    const folders: { readonly path: string; readonly header: Header }[] = [];
    const allowed = options.only === undefined ? undefined : new Allowed(options.only);
    try {
      for await (const entry of this.#extract) {
        const header = { ...entry.header, ...namesOf(entry.header) };
        const path = join(folder, cleanName(header.name));
        allowed?.assert(path, { isFollowed: header.type === "directory" });
        if (header.type === "link")
          allowed?.assert(join(folder, cleanName(header.linkname)), { isFollowed: true });
        await placeEntry(path, header, entry as AsyncIterable<Buffer>, folder);
        if (header.type === "symlink") allowed?.noteLink(path);
        if (options.keepOwners) lchownSync(pathOfText(path), header.uid ?? 0, header.gid ?? 0);
        if (header.type === "directory") folders.push({ path, header });
        else finishEntry(path, header);
        entry.resume();
      }
      for (const { path, header } of folders.reverse()) finishEntry(path, header);
    } catch (error) {
      throw error instanceof Refusal ? error : new Refusal(`cannot unpack: ${reasonOf(error)}`);
    }
  }
}

/** The paths that an archive may hold, none of them by way of links of its own. */
class Allowed {
  readonly #paths: ReadonlySet<string>;
  /** Links that the archive has made, by device and number. */
  readonly #links = new Set<string>();

  constructor(paths: readonly string[]) {
    this.#paths = new Set(paths);
  }

  /** @param isFollowed were it a link, what it leads to would be changed @throws Refusal */
  assert(path: string, { isFollowed }: { readonly isFollowed: boolean }): void {
    if (!this.#paths.has(path)) throw new Refusal(`the archive holds what was not asked for: ${path}`);
    for (let at = isFollowed ? path : dirname(path); at !== "/"; at = dirname(at))
      if (this.#links.has(identityOf(at) ?? ""))
        throw new Refusal(`the archive leads through its own link: ${path}`);
  }

  noteLink(path: string): void {
    this.#links.add(identityOf(path) ?? "");
  }
}

function identityOf(path: string): string | undefined {
  const stats = lstatSync(pathOfText(path), { throwIfNoEntry: false });
  return stats?.isSymbolicLink() ? `${stats.dev}:${stats.ino}` : undefined;
}

async function placeEntry(
  path: string,
  header: Header,
  content: AsyncIterable<Buffer>,
  folder: string,
): Promise<void> {
  const { type, linkname = "" } = header;
  const place = pathOfText(path);
  const existing = lstatSync(place, { throwIfNoEntry: false });
  if (type === "directory") {
    if (existing !== undefined && !existing.isDirectory() && !existing.isSymbolicLink()) rmSync(place);
    makeFolder(path);
    return;
  }
  makeFolder(dirname(path));
  if (existing?.isDirectory()) throw new Refusal(`a folder is in the way: ${path}`);
  if (existing !== undefined) rmSync(place);
  if (type === "symlink") symlinkSync(pathOfText(linkname), place);
  else if (type === "link") linkSync(pathOfText(join(folder, cleanName(linkname))), place);
  else if (type === "file" || type === "contiguous-file") await writeFile(place, content);
  else throw new Refusal(`neither file, folder nor link: ${path}`);
}

async function writeFile(path: string | Buffer, content: AsyncIterable<Buffer>): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    for await (const chunk of content) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
}

function finishEntry(path: string, { type, mode, mtime }: Header): void {
  if (type === "link") return; // it has those of its first name
  const place = pathOfText(path);
  const time = mtime ?? new Date();
  if (type === "symlink") {
    lutimesSync(place, time, time);
    return;
  }
  if (mode !== undefined) chmodSync(place, mode & 0o7777);
  utimesSync(place, time, time);
}

/** Like every tar: no name leads above the folder. */
function cleanName(name: string): string {
  return name
    .split("/")
    .filter(part => part !== "" && part !== "." && part !== "..")
    .join("/");
}
