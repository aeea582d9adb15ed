// Reads text files of a task unchanged: it converts no newline and removes no byte order mark.
import { readUserText } from "../files/user-files.ts";

/** @throws InputError when the file is missing or not UTF-8 */
export function readText(file: string): string {
  return readUserText(file, { what: "a file of the task", expected: "a text file", ifMissing: "add it" });
}
