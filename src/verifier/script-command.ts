// How the scripts of a task are run.

/**
 * As Harbor runs a task's tests and solution: by `bash -c`, which starts a program by what its first line says and runs
 * a script that names no shell by itself. Where the image has no bash, sh does the same.
 *
 * Bash reads ~/.bashrc when its input is a socket, as a remote shell would; `--norc` keeps an agent's out.
 *
 * @param script absolute, without characters that are special to a shell
 * @returns a command for sh; errors go where output goes
 */
export function scriptCommand(script: string): string {
  return `chmod +x ${script} && exec 2>&1 && if command -v bash >/dev/null; then exec bash --norc -c ${script}; else exec ${script}; fi`;
}
