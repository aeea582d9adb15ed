// The file of a config, as text.
import { readFile } from "node:fs/promises";
import { InputError } from "../failure/errors.ts";

export async function readConfig(file: string): Promise<string> {
  return readFile(file, "utf8").catch(cause => {
    throw new InputError(
      { what: "cannot read the config", where: file, expected: "a YAML file", fix: "check the path" },
      { cause },
    );
  });
}
