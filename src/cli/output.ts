// How commands write results.
import { writeFile } from "node:fs/promises";
import { Option } from "commander";
import { InputError } from "../failure/errors.ts";

export function jsonOption(): Option {
  return new Option("--json", "print the result as JSON on stdout");
}

/** Writes a result: JSON for machines, text for people. */
export function print(options: { readonly json?: boolean }, result: unknown, text: string): void {
  process.stdout.write(options.json ? `${JSON.stringify(result, undefined, 2)}\n` : text);
}

/** Writes the file that `--out` names. @throws InputError when it cannot be written */
export async function writeOut(file: string, text: string): Promise<void> {
  await writeFile(file, text).catch(cause => {
    throw new InputError(
      {
        what: "cannot write the file",
        where: file,
        expected: "a file in a folder that is there, has room and may be written to",
        fix: "choose another --out",
      },
      { cause },
    );
  });
}
