// Makes the sandbox toolkit in a folder, for an image that carries it to hosts without this repository.
// Usage: node containers/sandbox-toolkit/assemble.ts FOLDER [x64|arm64]     prints the toolkit's path

import { InputError } from "../../src/failure/errors.ts";
import { openToolkit } from "../../src/sandboxd/toolkit.ts";

const [, , folder, machine] = process.argv;
try {
  if (folder === undefined) throw new InputError("usage: assemble.ts FOLDER [x64|arm64]");
  process.stdout.write(`${openToolkit(folder, machine)}\n`);
} catch (error) {
  if (!(error instanceof InputError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 2;
}
