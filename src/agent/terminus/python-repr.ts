// A string as Python's repr() shows it; Harbor quotes a reply's JSON so in its error.

const SHORT: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** Python escapes what has no glyph: control, format, surrogate, private, unassigned, and separators but the space. */
const HIDDEN = /[\p{C}\p{Z}]/u;

export function pythonRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const shown = [...text].map(character => {
    if (character === quote) return `\\${character}`;
    const short = SHORT[character];
    if (short !== undefined) return short;
    if (character === " " || !HIDDEN.test(character)) return character;
    const code = character.codePointAt(0) ?? 0;
    if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
    if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
    return `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return quote + shown.join("") + quote;
}
