// The text of a Dockerfile as instructions and words.
// Reference: https://docs.docker.com/reference/dockerfile/#format and #escape

export interface DockerfileInstruction {
  /** In capitals. */
  readonly name: string;
  /** Everything behind the name, continued lines joined. */
  readonly text: string;
  /** Where it begins, from 1. */
  readonly line: number;
}

/** Instructions in order; comments and empty lines are left out, also those between continued lines. */
export function splitDockerfile(source: string): readonly DockerfileInstruction[] {
  const instructions: DockerfileInstruction[] = [];
  let pending: { text: string; line: number } | undefined;
  for (const [index, raw] of source
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .entries()) {
    if (/^\s*(#|$)/.test(raw)) continue;
    const isContinued = /\\[ \t]*$/.test(raw);
    const text = isContinued ? raw.replace(/\\[ \t]*$/, "") : raw;
    pending = { text: (pending?.text ?? "") + text, line: pending?.line ?? index + 1 };
    if (isContinued) continue;
    instructions.push(instruction(pending.text, pending.line));
    pending = undefined;
  }
  if (pending !== undefined) instructions.push(instruction(pending.text, pending.line));
  return instructions;
}

function instruction(text: string, line: number): DockerfileInstruction {
  const [, name = "", rest = ""] = /^\s*(\S+)\s*([\s\S]*?)\s*$/.exec(text) ?? [];
  return { name: name.toUpperCase(), text: rest, line };
}

/**
 * Paths of an instruction in JSON form, or between spaces; there a quote does not hold a space, as Docker has it.
 *
 * @returns undefined for what only a builder can resolve
 */
export function splitPaths(text: string): readonly string[] | undefined {
  const listed = text.startsWith("[") ? parseJson(text) : undefined;
  if (Array.isArray(listed) && listed.every(word => typeof word === "string")) return listed;
  const paths: string[] = [];
  for (const word of text.split(/\s+/).filter(part => part !== "")) {
    const path = splitAssignments(word);
    if (path === undefined) return undefined;
    paths.push(...path);
  }
  return paths;
}

/**
 * Words without quotes and escapes, as ENV has them.
 *
 * @returns undefined for what only a builder can resolve: variables, here-documents, an open quote
 */
export function splitAssignments(text: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === "$" && quote !== "'") return undefined;
    if (character === "\\" && quote !== "'") word = (word ?? "") + text.charAt(++at);
    else if (character === quote) quote = undefined;
    else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character;
      word ??= "";
    } else if (quote === undefined && /\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + character;
  }
  if (word !== undefined) words.push(word);
  if (quote !== undefined || words.some(each => each.startsWith("<<"))) return undefined;
  return words;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON: the shell form, as Docker reads it
  }
}
