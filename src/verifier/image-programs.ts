// Lists the programs of an image, so that we can tell a program that an agent added from one that shadows another.
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

const TIMEOUT_MS = 30_000;
const OUTPUT_LIMIT_BYTES = 8 << 20;

/**
 * @param clean a sandbox that no agent has used
 * @param path value of PATH
 */
export async function listPrograms(clean: Sandbox, path: string): Promise<ReadonlySet<string>> {
  // Uses the shell alone and prints one name per line; a name with a line break becomes two harmless names.
  const command = `IFS=:; for folder in $FOLDERS; do for file in "$folder"/*; do [ -e "$file" ] && printf '%s\\n' "\${file##*/}"; done; done; true`;
  const { stdout } = await clean.exec(command, {
    timeoutMs: TIMEOUT_MS,
    env: { FOLDERS: path },
    cwd: "/",
    outputLimitBytes: OUTPUT_LIMIT_BYTES,
  });
  return new Set(capturedText(stdout).split("\n"));
}
