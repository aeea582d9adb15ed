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
    throw attributeWriteError(cause, "the file", file);
  });
}

/** @returns InputError for an error of the file system at what `--out` names; everything else as it is */
export function attributeWriteError(error: unknown, what: string, where: string): unknown {
  if (!(error instanceof Error && "syscall" in error)) return error;
  return new InputError(
    {
      what: `cannot write ${what}`,
      where,
      expected: `a place that has room and may be written to, got ${error.message}`,
      fix: "choose another --out",
    },
    { cause: error },
  );
}
