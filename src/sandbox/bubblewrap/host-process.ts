// Starts programs of this machine for a sandbox: as the sandbox's user, with a fixed environment, in / and with no
// descriptor but those given. The environment matters: variables of a task such as LD_PRELOAD must not reach a program
// that runs outside.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { Failure } from "../../failure/errors.ts";
import { maskLeaks } from "../leaking-descriptors.ts";
import type { Host } from "./host.ts";

export const HOST_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" } as const;

type Stdio = Extract<SpawnOptions["stdio"], readonly unknown[]>;

export type HostProcess = ChildProcess & { readonly pid: number };

/**
 * @param group true: the process leads a group and session of its own
 * @throws Failure SandboxUnavailable when this machine has no process or memory left
 */
export async function startHostProcess(
  argv: readonly string[],
  { host, stdio, group }: { readonly host: Host; readonly stdio: Stdio; readonly group: boolean },
): Promise<HostProcess> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, {
    cwd: "/",
    env: HOST_ENV,
    detached: group,
    stdio: maskLeaks(stdio),
    ...host.user,
  });
  if (hasPid(child)) return child;
  const [error] = await once(child, "error");
  throw new Failure("SandboxUnavailable", `cannot start ${program}: ${error}`, {
    retryable: true,
    cause: error,
  });
}

function hasPid(child: ChildProcess): child is HostProcess {
  return child.pid !== undefined;
}

/** Runs a short program to its end. @returns exit code (undefined after a signal) and what it said on stderr */
export async function runHostProcess(
  argv: readonly string[],
  host: Host,
): Promise<{ readonly exitCode: number | undefined; readonly stderr: string }> {
  const child = await startHostProcess(argv, { host, stdio: ["ignore", "ignore", "pipe"], group: false });
  const chunks: Buffer[] = [];
  child.stderr?.on("data", chunk => chunks.push(chunk));
  const [exitCode] = await once(child, "close");
  return { exitCode: exitCode ?? undefined, stderr: Buffer.concat(chunks).toString() };
}
