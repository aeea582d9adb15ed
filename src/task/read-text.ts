// Text files of a task, as they are: no newline is converted and no byte order mark removed.
import { readUserText } from "../files/user-files.ts";

/** @throws InputError when there is no such file, or it is not UTF-8 */
export function readText(file: string): string {
  return readUserText(file, { what: "a file of the task", expected: "a text file", ifMissing: "add it" });
}
