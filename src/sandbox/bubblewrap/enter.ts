// The words that run a program inside a sandbox.
//
// nsenter arrives with every power over the sandbox, among them to mount the system folders writable. So the first
// programs after it run with the read-only toolkit as their root, where nothing of the agent's can reach them (a
// preloaded library least of all), drop the powers, and only then go over into the sandbox's own root.
import type { Host } from "./host.ts";
import type { Init } from "./init.ts";
import { TOOLKIT_MOUNT, toolkitCommand } from "./toolkit.ts";

/**
 * Capabilities that a command keeps in its own user namespace: Docker's default set without those that reach beyond
 * the files and processes of a sandbox (mknod, net_raw, setpcap, setfcap, audit_write).
 * Source: https://docs.docker.com/engine/containers/run/#runtime-privilege-and-linux-capabilities
 */
const KEPT_CAPABILITIES = [
  "chown",
  "dac_override",
  "fowner",
  "fsetid",
  "kill",
  "net_bind_service",
  "setgid",
  "setuid",
  "sys_chroot",
] as const;

/** Processes and threads of one sandbox together (counted per user namespace since Linux 5.14). */
const PROCESS_LIMIT = 2048;

const NAMESPACES = ["--user", "--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup"] as const;

/** Whose sandbox, and on which machine. */
export interface Inside {
  readonly host: Host;
  readonly init: Pick<Init, "pid">;
}

/**
 * @param program words as seen from the sandbox's root
 * @param session whether the program leads a session of its own, without the terminal it may have been started from
 */
export function enterWords(
  program: readonly string[],
  { host: { tools }, init: { pid } }: Inside,
  { session }: { readonly session: boolean },
): readonly string[] {
  const root = `/proc/${pid}/root`;
  const kept = KEPT_CAPABILITIES.map(name => `+${name}`).join(",");
  return [
    ...[tools.prlimit, `--nproc=${PROCESS_LIMIT}`, "--core=0"],
    ...[tools.nsenter, "--target", `${pid}`, ...NAMESPACES, "--preserve-credentials"],
    ...[`--root=${root}${TOOLKIT_MOUNT}`, `--wd=${root}`, "--"],
    ...(session ? toolkitCommand("setsid", "") : []),
    ...[...toolkitCommand("setpriv", ""), `--bounding-set=-all,${kept}`],
    ...["--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"],
    ...[...toolkitCommand("chroot", ""), ".", ...program],
  ];
}

/** Words for a script of the toolkit's own shell, which uses nothing of the sandbox but its files. */
export function toolkitWords(script: string, args: readonly string[], inside: Inside): readonly string[] {
  const shell = [...toolkitCommand("sh", TOOLKIT_MOUNT), "-c", script, "sh", ...args];
  return enterWords(shell, inside, { session: true });
}

/** A tool inside a script of `toolkitWords`. */
export function toolkitTool(tool: "mkdir" | "tar"): string {
  return toolkitCommand(tool, TOOLKIT_MOUNT).join(" ");
}
