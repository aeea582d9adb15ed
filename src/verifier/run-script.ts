// Runs the scripts of a task.
import type { ExecOptions, ExecResult, Sandbox } from "../sandbox/sandbox.ts";

const PREPARE_MS = 60_000;

/**
 * Runs a script like Harbor does: root makes it executable, then `bash -c` starts it as its user with the interpreter of
 * its first line; bash itself runs a script that names none. In an image without bash, sh does the same.
 *
 * Bash reads ~/.bashrc when its input is a socket, like a remote shell; `--norc` keeps the agent's from running.
 *
 * @param script absolute, without characters that are special to a shell
 * @param options.writable folders in which the script's user may write, whoever he is
 * @returns the result, with stderr in stdout
 * @throws Failure when the sandbox is lost, SandboxBroken among them
 */
export async function runScript(
  sandbox: Sandbox,
  script: string,
  { writable = [], ...options }: ExecOptions & { readonly writable?: readonly string[] },
): Promise<ExecResult> {
  const commands = [`chmod +x ${script}`, ...writable.map(folder => `chmod a+rwx ${folder}`)];
  await sandbox.exec(commands.join("; "), { cwd: "/", user: "root", timeoutMs: PREPARE_MS });
  const command = `exec 2>&1; if command -v bash >/dev/null; then exec bash --norc -c ${script}; else exec ${script}; fi`;
  return sandbox.exec(command, options);
}
