// Rules of a .harborignore file: gitignore patterns (https://git-scm.com/docs/gitignore), as Harbor reads them.

interface Rule {
  readonly matcher: RegExp;
  readonly isIgnoring: boolean;
}

/** @returns true to ignore a path, false to keep it, undefined when no rule speaks of it. */
export type IgnoreRules = (path: string) => boolean | undefined;

const LINE_END = /\r\n|[\n\r\v\f\x85\u2028\u2029]/;

/** Matches the end of a path, or the slash after a folder's name, which then is the group `folder`. */
const END_OR_FOLDER = "(?:(?<folder>/)|$)";

/** A closing bracket at the very beginning belongs to the set. */
const BRACKET = /^\[([!^]|(?![!^]))(\][^\]]*|[^\]]+)\]/;

/**
 * @param text content of a .harborignore file
 * @returns a function of a path relative to that file's folder; a folder's path ends in "/"
 * @throws SyntaxError for a pattern that cannot be read
 */
export function parseIgnoreRules(text: string): IgnoreRules {
  const rules = text.split(LINE_END).flatMap(line => parseRule(line) ?? []);
  // The last rule counts; but one that names the path itself beats later ones that only name a folder around it.
  const newestFirst = rules.toReversed();
  return path => {
    let byFolder: boolean | undefined;
    for (const { matcher, isIgnoring } of newestFirst) {
      const match = matcher.exec(path);
      if (match === null) continue;
      if (match.groups?.folder === undefined) return isIgnoring;
      byFolder ??= isIgnoring;
    }
    return byFolder;
  };
}

function parseRule(line: string): Rule | undefined {
  const pattern = line.endsWith("\\ ") ? line : line.trimEnd();
  if (pattern === "" || pattern === "/" || pattern.startsWith("#")) return undefined;
  const isIgnoring = !pattern.startsWith("!");
  const source = translatePattern(isIgnoring ? pattern : pattern.slice(1));
  return source === undefined ? undefined : { matcher: new RegExp(source, "u"), isIgnoring };
}

function translatePattern(pattern: string): string | undefined {
  const isFolder = pattern.endsWith("/");
  const segments = normalizeSegments(pattern.split("/"));
  const shape = segments.join("/");
  if (shape === "**" || shape === "**/*") return isFolder && shape === "**" ? "(?<folder>/)" : ".";
  if (shape === "**/*/**") return isFolder ? "(?<folder>/)" : "/";
  let source = "";
  let needsSlash = false;
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1;
    if (segment === "**") {
      if (index === 0) source += "^(?:.+/)?";
      else if (!isLast) source += "(?:/.+)?";
      else source += isFolder ? "(?<folder>/)" : "/";
      needsSlash = index > 0;
      continue;
    }
    const glob = segment === "*" ? "[^/]+" : translateGlob(segment);
    if (glob === undefined) return undefined;
    source += `${index === 0 ? "^" : ""}${needsSlash ? "/" : ""}${glob}${isLast ? END_OR_FOLDER : ""}`;
    needsSlash = true;
  }
  return source;
}

/** A pattern without an inner slash may match at any depth; one that ends in a slash means what is below. */
function normalizeSegments(parts: readonly string[]): readonly string[] {
  const isLoose = parts[0] !== "" && (parts.length === 1 || (parts.length === 2 && parts[1] === ""));
  const anchored = parts[0] === "" ? parts.slice(1) : isLoose ? ["**", ...parts] : parts;
  if (anchored.length === 0) throw new SyntaxError("a pattern of nothing but '!'");
  return anchored
    .map((segment, index) => (segment === "" && index === anchored.length - 1 ? "**" : segment))
    .filter((segment, index, all) => segment !== "**" || all[index - 1] !== "**");
}

/** @returns undefined for a bracket that is not closed: git drops such a pattern. */
function translateGlob(glob: string): string | undefined {
  let source = "";
  for (let index = 0; index < glob.length; index++) {
    const char = glob.charAt(index);
    if (char === "\\") {
      index += 1;
      if (index === glob.length) throw new SyntaxError(`a pattern that ends in an escape: ${glob}`);
      source += escapeSyntax(glob.charAt(index));
    } else if (char === "*") source += "[^/]*";
    else if (char === "?") source += "[^/]";
    else if (char === "[") {
      const [bracket, negation = "", inner = ""] = BRACKET.exec(glob.slice(index)) ?? [];
      if (bracket === undefined) return undefined;
      source += `[${negation === "" ? "" : "^"}${inner.replaceAll(/[\]\\^[]/g, "\\$&")}]`;
      index += bracket.length - 1;
    } else source += escapeSyntax(char);
  }
  return source;
}

function escapeSyntax(char: string): string {
  return char.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
}
