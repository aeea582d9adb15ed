// Patterns of a .dockerignore file: what of a build context is not there for COPY and ADD.
// Reference: https://docs.docker.com/build/concepts/context/#dockerignore-files

interface Rule {
  readonly matcher: RegExp;
  readonly isIgnoring: boolean;
}

/** @returns whether a path relative to the context is left out */
export function parseDockerignore(text: string): (path: string) => boolean {
  const rules: Rule[] = text.split(/\r?\n/).flatMap(line => {
    if (line.startsWith("#")) return [];
    const trimmed = line.trim();
    const isIgnoring = !trimmed.startsWith("!");
    const pattern = normalize(isIgnoring ? trimmed : trimmed.slice(1).trim());
    if (pattern === "" || pattern === ".") return [];
    return [{ matcher: new RegExp(`^${patternSource(pattern)}(?:/|$)`, "su"), isIgnoring }];
  });
  // The last rule that speaks of a path, or of a folder around it, counts.
  return path => rules.findLast(({ matcher }) => matcher.test(path))?.isIgnoring ?? false;
}

/** A regular expression for a pattern with `*`, `?`, `[…]` and `**`; none but the last matches a slash. */
export function patternSource(pattern: string): string {
  let source = "";
  for (let at = 0; at < pattern.length; at++) {
    const rest = pattern.slice(at);
    const [whole, negation, set] = /^\[(\^?)(\]?[^\]]*)\]/.exec(rest) ?? [];
    if (rest.startsWith("**/")) {
      source += "(?:.*/)?";
      at += 2;
    } else if (rest.startsWith("**")) {
      source += ".*";
      at += 1;
    } else if (rest.startsWith("*")) source += "[^/]*";
    else if (rest.startsWith("?")) source += "[^/]";
    else if (whole !== undefined && set !== undefined && set !== "") {
      source += `[${negation}${set.replace(/[\\[\]]/g, "\\$&")}]`;
      at += whole.length - 1;
    } else if (rest.startsWith("\\") && rest.length > 1) source += escapeText(pattern.charAt(++at));
    else source += escapeText(rest.charAt(0));
  }
  return source;
}

function normalize(pattern: string): string {
  const parts: string[] = [];
  for (const part of pattern.split("/")) {
    if (part === "" || part === ".") continue;
    if (part === "..") parts.pop();
    else parts.push(part);
  }
  return parts.join("/");
}

function escapeText(character: string): string {
  return /[\^$\\.*+?()[\]{}|/]/.test(character) ? `\\${character}` : character;
}
