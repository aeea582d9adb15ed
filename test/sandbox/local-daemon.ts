// The sandbox daemon as process 1 of a namespace of this machine, over a root that holds nothing but a shell: what a
// container engine would do, without one.
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../src/failure/errors.ts";
import { DaemonClient } from "../../src/sandboxd/client.ts";
import { DaemonSandbox } from "../../src/sandboxd/daemon-sandbox.ts";
import { DriverListener } from "../../src/sandboxd/driver-listener.ts";
import type { FrameStream } from "../../src/sandboxd/frame-stream.ts";
import { makeToken } from "../../src/sandboxd/handshake.ts";
import {
  DAEMON_ENV,
  daemonWords,
  LISTENER_MOUNT,
  openToolkit,
  TOOLKIT_MOUNT,
} from "../../src/sandboxd/toolkit.ts";
import { makeRootFolder } from "./root-folder.ts";

export const BUSYBOX = "/bin/busybox";
export const hasBusybox = existsSync(BUSYBOX);

export interface LocalDaemon extends AsyncDisposable {
  readonly sandbox: DaemonSandbox;
  readonly client: DaemonClient;
  readonly listener: DriverListener;
  readonly token: string;
  readonly process: ChildProcess;
  readonly listenerFolder: string;
  /** The connection of the moment. */
  readonly stream: () => FrameStream;
  /** The same sandbox for a second driver, after the first is gone. */
  readonly takeOver: () => Promise<LocalDaemon>;
}

export function toolkitForTests(): string {
  return openToolkit(join(tmpdir(), `t1-${process.getuid?.()}`, "toolkits"));
}

export interface LocalDaemonOptions {
  readonly lifeMs?: number;
  readonly words?: readonly string[];
  /** Of another processor than this machine's. */
  readonly foreign?: {
    readonly toolkit: string;
    readonly busybox: string;
    /** Before the words of a program that starts programs of that processor. */
    readonly within: readonly string[];
  };
}

/** @param root `busybox`: /bin/sh and nothing else; `programs`: the usual small programs of this machine */
export async function startLocalDaemon(
  root: "busybox" | "programs" = "programs",
  { lifeMs = 120_000, words, foreign }: LocalDaemonOptions = {},
): Promise<LocalDaemon> {
  const folder = mkdtempSync(join(tmpdir(), "t1-d-"));
  chmodSync(folder, 0o755);
  const listenerFolder = join(folder, "listener");
  mkdirSync(listenerFolder);
  const image = join(folder, "root");
  if (root === "busybox") {
    mkdirSync(join(image, "bin"), { recursive: true });
    copyFileSync(foreign?.busybox ?? BUSYBOX, join(image, "bin/sh"));
    symlinkSync("sh", join(image, "bin/busybox"));
  } else makeRootFolder(image, { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 });
  const options = [
    ...["--unshare-all", "--as-pid-1", "--uid", "0", "--gid", "0", "--die-with-parent", "--clearenv"],
    ...["--cap-drop", "ALL", ...CAPABILITIES.flatMap(name => ["--cap-add", `CAP_${name}`])],
    ...Object.entries(DAEMON_ENV).flatMap(([name, value]) => ["--setenv", name, value]),
    ...[
      "--bind",
      image,
      "/",
      "--ro-bind",
      foreign?.toolkit ?? toolkitForTests(),
      TOOLKIT_MOUNT,
      "--ro-bind",
      listenerFolder,
      LISTENER_MOUNT,
    ],
    ...["--proc", "/proc", "--dev", "/dev", "--"],
  ];
  const command = ["bwrap", ...options, ...(words ?? daemonWords("connect", `${LISTENER_MOUNT}/s`))];
  const [program = "", ...args] = [...(foreign?.within ?? []), ...command];
  const started = spawn(program, args, {
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env.PATH },
  });
  const exited = new Promise<string>(resolve =>
    started.once("exit", (code, signal) => resolve(`${code ?? signal}`)),
  );
  let gone: Failure | undefined;
  void exited.then(end => {
    gone = new Failure("SandboxLost", `its daemon ended: ${end}`, { retryable: true });
  });
  const token = makeToken();
  const lease = { id: folder, generation: 1, deadlineMs: Date.now() + lifeMs };
  const attach = async (isGrant: boolean): Promise<LocalDaemon> => {
    const listener = await DriverListener.open({
      folder: listenerFolder,
      token,
      isGrant,
      whyGone: async () => gone,
    });
    let current: FrameStream | undefined;
    const client = new DaemonClient(async () => {
      current = await listener.connect();
      return current;
    });
    const { value } = await client.call({ op: "open", deadlineMs: lease.deadlineMs, made: ["/app", "/tmp"] });
    if (value.refused !== undefined) throw new Error(value.refused);
    const sandbox = new DaemonSandbox(lease, client, {
      ...{ workdir: "/app", env: { PATH: "/usr/bin:/bin" }, user: undefined },
    });
    return {
      ...{ sandbox, client, listener, token, process: started, listenerFolder },
      stream: () => {
        if (current === undefined) throw new Error("nobody is connected");
        return current;
      },
      takeOver: async () => {
        client.lose(new Error("this driver is gone"));
        listener.close();
        return attach(false);
      },
      [Symbol.asyncDispose]: async () => {
        started.kill("SIGKILL");
        await exited;
        client.lose(new Error("the test has ended"));
        listener.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  };
  return attach(true);
}

/** As the docker provider leaves them. */
const CAPABILITIES = [
  ...["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"],
  ...["NET_BIND_SERVICE", "SYS_CHROOT"],
];
