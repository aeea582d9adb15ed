// Parses values of a Compose file: durations, sizes, commands.
// Reference: https://github.com/compose-spec/compose-spec/blob/main/11-extension.md
import { InputError } from "../failure/errors.ts";

const UNIT_MS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** "1m30s", "500ms". @returns ms */
export function parseDuration(text: string, where: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== text)
    throw new InputError({ what: "not a duration", where, expected: `one like 1m30s, got ${text}` });
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ""] ?? 0), 0);
}

const UNIT_BYTES: Readonly<Record<string, number>> = { "": 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

/** "512m", "1G", "1gb". @returns bytes */
export function parseSize(text: string, where: string): number {
  const [, count, unit = ""] = /^(\d+(?:\.\d+)?)\s*([bkmg]?)b?$/i.exec(text.trim()) ?? [];
  if (count === undefined)
    throw new InputError({ what: "not a size", where, expected: `one like 512m, got ${text}` });
  return Math.round(Number(count) * (UNIT_BYTES[unit.toLowerCase()] ?? 1));
}

/** Splits a command into words like Compose does: as a shell would, without running one. */
export function splitCommand(command: string | readonly string[], where: string): readonly string[] {
  if (typeof command !== "string") return command;
  const words: string[] = [];
  const rest = command.trim();
  const word = /(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gy;
  let at = 0;
  while (at < rest.length) {
    word.lastIndex = at;
    const [found] = word.exec(rest) ?? [];
    if (found === undefined)
      throw new InputError({ what: "not a command", where, expected: `closed quotes, got ${command}` });
    words.push(found.replace(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/g, unquote));
    at += found.length;
    while (/\s/.test(rest[at] ?? "")) at++;
  }
  return words;
}

function unquote(_: string, escaped?: string, double?: string, single?: string): string {
  return escaped ?? double?.replace(/\\(["\\$`])/g, "$1") ?? single ?? "";
}
