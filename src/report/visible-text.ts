// Makes characters visible that a page would hide, reorder or drop: terminals print them, and text can lie with them.

/**
 * Controls but for newline and tab, format characters (bidirectional overrides, zero-width ones, tags), line and
 * paragraph separators, private and unassigned code points, lone surrogates, and what Unicode calls ignorable.
 */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}\p{Default_Ignorable_Code_Point}]/gu;
const HIDDEN_RUN = new RegExp(`((?:${HIDDEN.source})+)`, "gu");

/** Writes hidden characters as escapes: `\x1b`, `\u202e`, `\u{e0041}`. */
export function visibleText(text: string): string {
  return text.replace(HIDDEN, showCharacter);
}

/** Splits a text into pieces that alternate: visible, hidden (shown as escapes), visible, … */
export function splitHidden(text: string): readonly { readonly text: string; readonly hidden: boolean }[] {
  return text
    .split(HIDDEN_RUN)
    .map((piece, index) => ({ text: index % 2 === 1 ? visibleText(piece) : piece, hidden: index % 2 === 1 }))
    .filter(piece => piece.text !== "");
}

export interface CutText {
  readonly head: string;
  readonly tail: string;
  /** UTF-16 units left out between head and tail. */
  readonly omitted: number;
}

/** Keeps the first two thirds and the last third of a limit, where most of the information of an output stands. */
export function cutText(text: string, limit: number): CutText {
  if (text.length <= limit) return { head: text, tail: "", omitted: 0 };
  const tailLength = Math.floor(limit / 3);
  const head = text.slice(0, limit - tailLength);
  const tail = tailLength === 0 ? "" : text.slice(-tailLength);
  return { head, tail, omitted: text.length - head.length - tail.length };
}

/** Shortens a name or message to one line. */
export function shorten(text: string, limit = 240): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}…`;
}

function showCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (character === "\r") return "\\r";
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, "0")}` : `\\u{${code.toString(16)}}`;
}
