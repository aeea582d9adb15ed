// Names of files are bytes, and what the daemon says is text. A byte that is no UTF-8 is a lone surrogate there, U+DC80 to
// U+DCFF, as Python has it (PEP 383), so that every name comes back as it was. JSON keeps them; people are shown U+FFFD.
import { isUtf8 } from "node:buffer";
import { readdirSync, readlinkSync } from "node:fs";

const SURROGATE = 0xdc00;
const REPLACEMENT = "\ufffd";

function textOfPath(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
  if (!text.includes(REPLACEMENT) || isUtf8(bytes)) return text;
  let escaped = "";
  for (let at = 0; at < bytes.length; ) {
    const length = [1, 2, 3, 4].find(
      size => at + size <= bytes.length && isUtf8(bytes.subarray(at, at + size)),
    );
    escaped +=
      length === undefined
        ? String.fromCharCode(SURROGATE + (bytes[at] ?? 0))
        : Buffer.from(bytes.subarray(at, at + length)).toString("utf8");
    at += length ?? 1;
  }
  return escaped;
}

/** As the functions of `node:fs` take it. */
export function pathOfText(text: string): string | Buffer {
  if (text.isWellFormed()) return text;
  const pieces = Array.from(text, character => {
    const code = character.charCodeAt(0);
    const isByte = character.length === 1 && code >= SURROGATE + 0x80 && code <= SURROGATE + 0xff;
    return isByte ? Buffer.of(code - SURROGATE) : Buffer.from(character);
  });
  return Buffer.concat(pieces);
}

/** The names in a folder. */
export function readNames(folder: string): string[] {
  const path = pathOfText(folder);
  const names = readdirSync(path);
  if (!names.some(name => name.includes(REPLACEMENT))) return names;
  return readdirSync(path, { encoding: "buffer" }).map(textOfPath);
}

/** Where a link leads. */
export function readTarget(link: string): string {
  return textOfPath(readlinkSync(pathOfText(link), { encoding: "buffer" }));
}
