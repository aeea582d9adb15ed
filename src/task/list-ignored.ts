// Lists the files that .harborignore keeps out of uploads. The file counts in tests/ and solution/, the task's and each step's,
// and in folders below; an inner file overrules an outer one, but nothing brings back what lies in an ignored folder.
import { existsSync, realpathSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { InputError } from "../failure/errors.ts";
import { type IgnoreRules, parseIgnoreRules } from "./ignore-rules.ts";
import { isInside } from "./links.ts";
import type { FolderEntry } from "./list-folder.ts";
import { readText } from "./read-text.ts";

const IGNORE_FILE = ".harborignore";
const SCOPE = /^(steps\/[^/]+\/)?(tests|solution)\//;

/**
 * @param folder  the task folder, symbolic links resolved
 * @param entries as listFolder returns them for it
 * @returns sorted paths of files, and of folders that are ignored whole
 * @throws InputError when a .harborignore cannot be read
 */
export function listIgnored(folder: string, entries: readonly FolderEntry[]): readonly string[] {
  const candidates = entries.filter(({ path }) => SCOPE.test(path));
  if (!candidates.some(({ path }) => path.split("/").includes(IGNORE_FILE))) return [];
  const rulesIn = readRules(folder);
  const ignored = new Set<string>();
  for (const { path, kind } of candidates) {
    const target = kind === "link" ? linkTarget(folder, path) : undefined;
    const found =
      ignoredPart(path, target?.isFolder ?? false, rulesIn) ??
      (target !== undefined && ignoredPart(target.path, target.isFolder, rulesIn) !== undefined
        ? path
        : undefined);
    if (found !== undefined) ignored.add(found);
  }
  return [...ignored].toSorted();
}

/** @returns the path itself or the outermost folder around it that is ignored. */
function ignoredPart(
  path: string,
  isFolder: boolean,
  rulesIn: (inner: string) => IgnoreRules | undefined,
): string | undefined {
  const names = path.split("/");
  if (names.at(-1) === IGNORE_FILE) return path;
  const scopes: { readonly depth: number; readonly rules: IgnoreRules }[] = [];
  for (const depth of names.keys()) {
    const rules = rulesIn(names.slice(0, depth).join("/"));
    if (rules !== undefined) scopes.push({ depth, rules });
    const part = names.slice(0, depth + 1);
    const slash = depth < names.length - 1 || isFolder ? "/" : "";
    const verdicts = scopes.map(scope => scope.rules(`${part.slice(scope.depth).join("/")}${slash}`));
    if (verdicts.findLast(verdict => verdict !== undefined) === true) return part.join("/");
  }
  return undefined;
}

/** Rules of the .harborignore in a folder of the task, read once. */
function readRules(folder: string): (inner: string) => IgnoreRules | undefined {
  const known = new Map<string, IgnoreRules | undefined>();
  return inner => {
    if (!SCOPE.test(`${inner}/`)) return undefined;
    if (!known.has(inner)) {
      const file = join(folder, inner, IGNORE_FILE);
      known.set(inner, existsSync(file) ? parseFile(file) : undefined);
    }
    return known.get(inner);
  };
}

function parseFile(file: string): IgnoreRules {
  const patterns = readText(file);
  try {
    return parseIgnoreRules(patterns);
  } catch (cause) {
    const text = {
      what: `ignore rules cannot be read: ${cause instanceof Error ? cause.message : cause}`,
      where: file,
      expected: "a file of gitignore patterns, one a line",
      fix: "correct the pattern, or remove the file",
    };
    throw new InputError(text, { cause });
  }
}

function linkTarget(
  folder: string,
  path: string,
): { readonly path: string; readonly isFolder: boolean } | undefined {
  const link = join(folder, path);
  if (!existsSync(link)) return undefined;
  const target = realpathSync(link);
  if (!isInside(folder, target)) return undefined;
  return { path: relative(folder, target), isFolder: statSync(target).isDirectory() };
}
