// The folder that COPY and ADD take files from: what is in it, without what .dockerignore leaves out.
import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { join, posix } from "node:path";
import { listUserFolder, readUserText } from "../files/user-files.ts";
import { parseDockerignore, patternSource } from "./ignore-file.ts";

export interface ContextEntry {
  /** Relative to the context, with "/" between names. */
  readonly path: string;
  readonly kind: "file" | "folder" | "link" | "other";
  /** Where it lies on this machine. */
  readonly source: string;
  /** Permission bits. */
  readonly mode: number;
  readonly modifiedAt: Date;
  /** Where a link leads. */
  readonly target?: string;
}

export class BuildContext {
  readonly #folder: string;
  readonly #isIgnored: (path: string) => boolean;

  /** @param dockerfile one beside it that ends in .dockerignore goes before the folder's own */
  constructor(folder: string, dockerfile: string) {
    this.#folder = realpathSync(folder);
    const file = [`${dockerfile}.dockerignore`, join(folder, ".dockerignore")].find(path => existsSync(path));
    this.#isIgnored =
      file === undefined
        ? () => false
        : parseDockerignore(readUserText(file, { what: "the .dockerignore", expected: "a text file" }));
  }

  /**
   * Paths below the context that a source of COPY names, in order; none when nothing matches.
   *
   * @param source may hold `*`, `?` and `[…]`; a leading slash is the context itself
   */
  match(source: string): readonly string[] {
    // As a path of a root: nothing leads out of the context.
    const path = posix.resolve("/", source).slice(1);
    if (!/[*?[\\]/.test(path)) return this.entry(path) === undefined ? [] : [path];
    const matcher = new RegExp(`^${patternSource(path)}$`, "su");
    const found: string[] = [];
    const depth = path.split("/").length;
    for (const { path: candidate } of this.below("", depth))
      if (matcher.test(candidate)) found.push(candidate);
    return found.sort();
  }

  /** @returns undefined when it is not there, left out, or not in the context once its links are followed */
  entry(path: string): ContextEntry | undefined {
    const absolute = join(this.#folder, path);
    if (lstatSync(absolute, { throwIfNoEntry: false }) === undefined) return undefined;
    if (path !== "" && this.#isLeftOut(path)) return undefined;
    // A source that is a link stands for what it leads to.
    const real = existsSync(absolute) ? realpathSync(absolute) : absolute;
    if (real !== this.#folder && !real.startsWith(`${this.#folder}/`)) return undefined;
    return describe(path, real);
  }

  /** The content of a folder, folders before their content, sorted; links are not followed. */
  *below(path: string, depth = Number.POSITIVE_INFINITY): Iterable<ContextEntry> {
    const real = realpathSync(join(this.#folder, path));
    yield* this.#walk(real, path, depth);
  }

  *#walk(real: string, path: string, depth: number): Iterable<ContextEntry> {
    const entries = listUserFolder(real, { what: "a folder of the build context", expected: "a folder" });
    for (const name of entries.map(entry => entry.name).sort()) {
      const child = path === "" ? name : `${path}/${name}`;
      const entry = describe(child, join(real, name));
      const isIgnored = this.#isIgnored(child);
      if (entry.kind !== "folder") {
        if (!isIgnored) yield entry;
        continue;
      }
      // An exception (`!`) may keep something in a folder that is left out.
      const inside = depth > 1 ? [...this.#walk(join(real, name), child, depth - 1)] : [];
      if (!isIgnored || inside.length > 0) yield entry;
      yield* inside;
    }
  }

  #isLeftOut(path: string): boolean {
    if (!this.#isIgnored(path)) return false;
    const isFolder = lstatSync(join(this.#folder, path)).isDirectory();
    return !isFolder || [...this.below(path)].length === 0;
  }
}

function describe(path: string, source: string): ContextEntry {
  const stats = lstatSync(source);
  const common = { path, source, mode: stats.mode & 0o7777, modifiedAt: stats.mtime };
  if (stats.isSymbolicLink()) return { ...common, kind: "link", target: readlinkSync(source) };
  if (stats.isDirectory()) return { ...common, kind: "folder" };
  return { ...common, kind: stats.isFile() ? "file" : "other" };
}
