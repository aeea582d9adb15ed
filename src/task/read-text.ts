// Text files of a task, as they are: no newline is converted and no byte order mark removed.
import { readFileSync } from "node:fs";
import { InputError } from "../failure/errors.ts";

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws InputError when there is no such file, or it is not UTF-8 */
export function readText(file: string): string {
  try {
    return DECODER.decode(readFileSync(file));
  } catch (cause) {
    const isText = !(cause instanceof TypeError);
    throw new InputError(
      {
        what: isText
          ? `file cannot be read (${cause instanceof Error ? cause.message : cause})`
          : "file is not UTF-8",
        where: file,
        expected: "a text file",
        fix: isText ? "add it" : "save it as UTF-8",
      },
      { cause },
    );
  }
}
