// What rules do in a sandbox and look at there.
import { expect } from "vitest";
import { capturedText } from "../../../src/sandbox/captured-text.ts";
import type { ExecOptions, ExecResult, Sandbox } from "../../../src/sandbox/sandbox.ts";

const TIMEOUT_MS = 20_000;
/** More than any command of these tests needs, less than the 30 s that the stuck ones sleep. */
export const SOON_MS = 8_000;

export function run(
  sandbox: Sandbox,
  command: string,
  options: Partial<ExecOptions> = {},
): Promise<ExecResult> {
  return sandbox.exec(command, { timeoutMs: TIMEOUT_MS, ...options });
}

export async function output(
  sandbox: Sandbox,
  command: string,
  options: Partial<ExecOptions> = {},
): Promise<string> {
  const { end, stdout, stderr } = await run(sandbox, command, options);
  expect(end, `${command.slice(0, 200)}: ${capturedText(stderr)}`).toEqual({ kind: "exited", exitCode: 0 });
  return capturedText(stdout);
}

/** How many processes of a name are inside, without a program such as ps. */
export async function processes(sandbox: Sandbox, name: string): Promise<number> {
  const names = await output(
    sandbox,
    'for f in /proc/[0-9]*/stat; do read -r pid comm state rest < "$f" && echo "$comm $state"; done 2>/dev/null; true',
  );
  return names
    .split("\n")
    .filter(line => line === `(${name}) S` || line === `(${name}) R` || line === `(${name}) T`).length;
}

export async function packed(result: Awaited<ReturnType<Sandbox["download"]>>): Promise<Uint8Array> {
  if ("tar" in result) return result.tar;
  throw new Error(`nothing was packed: ${JSON.stringify(result)}`);
}
