// How the scripts of a task are run.
import type { ExecOptions, ExecResult, Sandbox } from "../sandbox/sandbox.ts";

const PREPARE_MS = 60_000;

/**
 * As Harbor runs a task's tests and solution: root makes it executable, then `bash -c` starts it as its user, by what its
 * first line says; a script that names no shell bash runs by itself. Where the image has no bash, sh does the same.
 *
 * Bash reads ~/.bashrc when its input is a socket, as a remote shell would; `--norc` keeps an agent's out.
 *
 * @param script absolute, without characters that are special to a shell
 * @param options.writable folders in which the script's user may write, whoever he is
 * @returns its result; errors go where output goes
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
