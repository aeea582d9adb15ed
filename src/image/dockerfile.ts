// The text of a Dockerfile as instructions: directives, comments, continued lines, flags and here-documents.
// Reference: https://docs.docker.com/reference/dockerfile/ ("Format", "Parser directives", "Here-Documents")
import { InputError } from "../failure/errors.ts";
import { unquote, words } from "./dockerfile-words.ts";

export interface Dockerfile {
  /** For messages. */
  readonly file: string;
  /** The character that continues a line and escapes the next character. */
  readonly escapeCharacter: Escape;
  readonly instructions: readonly Instruction[];
}

export type Escape = "\\" | "`";

export interface Instruction {
  /** In capitals. */
  readonly name: string;
  /** `--name=value` before everything else; `true` without a value. */
  readonly flags: ReadonlyMap<string, string | true>;
  /** Everything behind name and flags, continued lines joined. */
  readonly text: string;
  readonly heredocs: readonly Heredoc[];
  /** Where it begins, from 1. */
  readonly line: number;
}

export interface Heredoc {
  /** As it stands in the text: `<<EOF`, `<<-"EOF"`. */
  readonly word: string;
  /** The line that ends it, and the name of its file. */
  readonly name: string;
  readonly content: string;
  /** Variables in it are replaced, because its name was not quoted. */
  readonly isExpanded: boolean;
}

const WITH_FLAGS = new Set(["ADD", "COPY", "FROM", "HEALTHCHECK", "RUN"]);
const WITH_HEREDOCS = new Set(["ADD", "COPY", "RUN"]);

/** @throws InputError naming file and line */
export function parseDockerfile(source: string, file: string): Dockerfile {
  const lines = source.replace(/^\uFEFF/, "").split(/\r?\n/);
  const escapeCharacter = readEscape(lines, file);
  const isContinued = escapeCharacter === "\\" ? /(?<=^|[^\\])\\[ \t]*$/ : /(?<=^|[^`])`[ \t]*$/;
  const instructions: Instruction[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = at + 1;
    let text: string | undefined;
    while (at < lines.length) {
      const raw = lines[at++] ?? "";
      // Also between continued lines, where an empty line is left out too.
      if (/^\s*(#|$)/.test(raw)) {
        if (text === undefined) break;
        continue;
      }
      text = (text ?? "") + (text === undefined ? raw.trimStart() : raw).replace(isContinued, "");
      if (!isContinued.test(raw)) break;
    }
    if (text === undefined) continue;
    const begun = beginInstruction(text, line);
    const heredocs: Heredoc[] = [];
    for (const mark of WITH_HEREDOCS.has(begun.name) ? heredocMarks(begun.text, escapeCharacter) : []) {
      const content: string[] = [];
      for (let ended = false; !ended; ) {
        const raw = lines[at++];
        if (raw === undefined) {
          throw new InputError({
            what: "a here-document does not end",
            where: `${file}:${line}`,
            expected: `a line ${JSON.stringify(mark.name)}`,
            fix: "add the line",
          });
        }
        const read = mark.isTabbed ? raw.replace(/^\t+/, "") : raw;
        ended = read === mark.name;
        if (!ended) content.push(`${read}\n`);
      }
      heredocs.push({
        word: mark.word,
        name: mark.name,
        content: content.join(""),
        isExpanded: mark.isExpanded,
      });
    }
    instructions.push({ ...begun, heredocs });
  }
  return { file, escapeCharacter, instructions };
}

/** The array of strings that CMD, ENTRYPOINT, RUN, SHELL, COPY, ADD and VOLUME may have; undefined for other texts. */
export function jsonWords(text: string): readonly string[] | undefined {
  if (!text.startsWith("[")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every(word => typeof word === "string") ? value : undefined;
  } catch {
    return undefined; // the shell form, as Docker reads it
  }
}

/** Directives stand before everything else, also before comments. */
function readEscape(lines: readonly string[], file: string): Escape {
  for (const [index, line] of lines.entries()) {
    const [, name, value] = /^\s*#\s*([a-zA-Z][\w-]*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined) break;
    if (name.toLowerCase() !== "escape") continue;
    if (value === "\\" || value === "`") return value;
    throw new InputError({
      what: `escape=${value}`,
      where: `${file}:${index + 1}`,
      expected: "\\ or `",
      fix: "change the line",
    });
  }
  return "\\";
}

function beginInstruction(text: string, line: number): Omit<Instruction, "heredocs"> {
  const [, word = "", all = ""] = /^(\S+)\s*([\s\S]*?)\s*$/.exec(text) ?? [];
  const name = word.toUpperCase();
  const flags = new Map<string, string | true>();
  let rest = all;
  while (WITH_FLAGS.has(name)) {
    const [whole, flag, value] = /^--([a-z][a-z-]*)(?:=(\S*))?(?:\s+|$)/.exec(rest) ?? [];
    if (whole === undefined || flag === undefined) break;
    flags.set(flag, value ?? true);
    rest = rest.slice(whole.length);
  }
  return { name, flags, text: rest, line };
}

interface HeredocMark {
  readonly word: string;
  readonly name: string;
  /** `<<-`: tabs at the beginning of its lines do not count. */
  readonly isTabbed: boolean;
  readonly isExpanded: boolean;
}

function heredocMarks(text: string, escapeCharacter: Escape): readonly HeredocMark[] {
  if (jsonWords(text) !== undefined) return [];
  return words(text, escapeCharacter).flatMap(word => {
    const [, dash, quoted] = /^\d*<<(-?)([^<]+)$/.exec(word) ?? [];
    if (quoted === undefined) return [];
    const name = unquote(quoted, escapeCharacter);
    return [{ word, name, isTabbed: dash === "-", isExpanded: name === quoted }];
  });
}
