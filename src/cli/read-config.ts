// The file of a config, as text.
import { readUserText } from "../files/user-files.ts";

/** @throws InputError when it cannot be read */
export function readConfig(file: string): string {
  return readUserText(file, { what: "the config", expected: "a YAML file" });
}
