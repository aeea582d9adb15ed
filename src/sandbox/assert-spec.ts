// Checks that every provider makes of a spec before it starts anything.
import { InputError, InvariantError } from "../failure/errors.ts";
import { assertEnvironment } from "./command-words.ts";
import type { SandboxSpec } from "./sandbox.ts";

/** @throws InputError for a path or variable that no sandbox can have */
export function assertSpec({ workdir, env, diskBytes, image }: SandboxSpec): void {
  assertEnvironment(env, "environment of the sandbox");
  const paths = [workdir, ...image.files.map(file => file.to)];
  for (const path of paths) {
    if (path.startsWith("/") && !path.includes("\0") && !path.split("/").includes("..")) continue;
    throw new InputError({
      what: "not a path of a sandbox",
      where: JSON.stringify(path),
      expected: "an absolute path without ..",
      fix: "write it out from /",
    });
  }
  if (!Number.isSafeInteger(diskBytes) || diskBytes <= 0)
    throw new InvariantError("room is whole bytes", { diskBytes });
}
