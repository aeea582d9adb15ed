// The names of an image's programs, to tell a program that an agent has added from one that takes another's place.
import { capturedText } from "../sandbox/captured-text.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

const TIMEOUT_MS = 30_000;
const OUTPUT_LIMIT_BYTES = 8 << 20;

/**
 * @param clean a sandbox in which no agent was
 * @param path value of PATH
 */
export async function listPrograms(clean: Sandbox, path: string): Promise<ReadonlySet<string>> {
  // With nothing but the shell: names one a line; one with a line break in it stands for two that nobody types.
  const command = `IFS=:; for folder in $FOLDERS; do for file in "$folder"/*; do [ -e "$file" ] && printf '%s\\n' "\${file##*/}"; done; done; true`;
  const { stdout } = await clean.exec(command, {
    timeoutMs: TIMEOUT_MS,
    env: { FOLDERS: path },
    cwd: "/",
    outputLimitBytes: OUTPUT_LIMIT_BYTES,
  });
  return new Set(capturedText(stdout).split("\n"));
}
