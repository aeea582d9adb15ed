// The containers of one sandbox task as processes of this machine: each with root, processes and names of its own, from
// the definition that would be registered. They share this machine's network, each task under its own loopback address;
// that sandboxes have no way out is for security groups to see to, which no fake can show.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { KeyValuePair } from "@aws-sdk/client-ecs";
import { TOOLKIT_MOUNT } from "../../../src/sandboxd/toolkit.ts";
import { toolkitForTests } from "../local-daemon.ts";

const run = promisify(execFile);

/** What of a container's definition this machine can follow. */
export interface ContainerDefinition {
  readonly name: string;
  readonly entryPoint: readonly string[];
  readonly command: readonly string[];
  readonly environment: readonly KeyValuePair[];
  readonly linuxParameters: { readonly capabilities: { readonly drop: readonly string[] } };
}

/** Docker's default set, by which Fargate's containers start. */
const CAPABILITIES = [
  ...["AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"],
  ...["NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"],
];

/** Found out once: it reads every file of the daemon. */
let toolkit: string | undefined;

export interface LocalContainer {
  readonly process: ChildProcess;
  /** Exit code, as the platform would tell it: 128 and the number of a signal. */
  readonly ended: Promise<number>;
  readonly kill: () => void;
  /** What is in a file of its root; when it has ended, of the one that it was started with as `keptFile`. */
  readonly read: (path: string) => string;
}

export interface ContainerParts {
  /** Folder that its image stands for; it is copied. */
  readonly root: string;
  readonly address: string;
  readonly environment: readonly KeyValuePair[];
  /** Path inside, which is kept when the container has ended. */
  readonly keptFile?: string | undefined;
}

export async function startContainer(
  definition: ContainerDefinition,
  { root, address, environment, keptFile }: ContainerParts,
): Promise<LocalContainer> {
  toolkit ??= toolkitForTests();
  const folder = mkdtempSync(join(tmpdir(), "t1-ecs-"));
  await run("cp", ["-a", root, join(folder, "root")]);
  const variables = [...definition.environment, ...environment];
  const kept = CAPABILITIES.filter(name => !definition.linuxParameters.capabilities.drop.includes(name));
  const options = [
    ...["--unshare-all", "--share-net", "--as-pid-1", "--uid", "0", "--gid", "0", "--die-with-parent"],
    ...["--clearenv", "--cap-drop", "ALL", ...kept.flatMap(name => ["--cap-add", `CAP_${name}`])],
    ...variables.flatMap(({ name = "", value = "" }) => ["--setenv", name, value]),
    ...["--bind", join(folder, "root"), "/", "--ro-bind", toolkit, TOOLKIT_MOUNT],
    ...["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--chdir", "/", "--"],
  ];
  // Its own address is all that a container of Fargate has; here that is one of many.
  const words = [...definition.entryPoint, ...definition.command].map(word =>
    word.replace("0.0.0.0", address),
  );
  const started = spawn("bwrap", [...options, ...words], {
    stdio: ["ignore", "ignore", process.env.T1_ECS_LOG === undefined ? "ignore" : "inherit"],
    env: { PATH: process.env.PATH },
    detached: true, // leads a group: killed alone too early, it would leave what it has just forked
  });
  const ended = new Promise<number>(resolve =>
    started.once("exit", (code, signal) => resolve(code ?? (signal === "SIGKILL" ? 137 : 143))),
  );
  const read = (path: string): string => {
    const file = join(folder, "root", path);
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  let keptText: string | undefined;
  const removed = ended.finally(() => {
    keptText = keptFile === undefined ? "" : read(keptFile);
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    ...{ process: started, ended: removed, kill: () => killGroup(started) },
    read: path => keptText ?? read(path),
  };
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // it has ended
  }
}
