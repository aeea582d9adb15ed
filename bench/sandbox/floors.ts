// The floors of the bench: bubblewrap and containers used bare, with one resident shell and one process per command, and
// the ways in which other products run a command in a container.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Engine } from "../../src/sandbox/docker/engine.ts";
import type { Box, Contender } from "./contender.ts";

const SYSTEM = [
  ...["--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"],
  ...["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"],
];

/** Runs a local program, reads its output and waits for its end. */
export async function runProgram([program = "", ...args]: readonly string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  await once(child, "close");
}

/** `sh -c true`, started by Node: a command without a sandbox. */
export function plainShell(): Contender {
  return {
    name: "sh -c true",
    kind: "none",
    create: async () => ({ command: () => runProgram(["/bin/sh", "-c", "true"]), stop: async () => {} }),
    [Symbol.asyncDispose]: async () => {},
  };
}

/** An overlay over a folder, bubblewrap, and a resident shell. */
export function bareBubblewrap(): Contender {
  const folder = mkdtempSync(join(tmpdir(), "t1-floor-"));
  // In a mount namespace of its own, which ends with the shell; the overlay's upper folders lie in memory.
  const mount = `mount -t tmpfs none ${folder} && cd ${folder} && mkdir l u w m && mount -t overlay none -o lowerdir=l,upperdir=u,workdir=w m && exec "$@"`;
  const words = [
    ...["unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh", "bwrap", "--unshare-all"],
    ...["--die-with-parent", "--uid", "0", "--gid", "0", "--bind", `${folder}/m`, "/", ...SYSTEM, "bash"],
  ];
  return {
    name: "bare overlay, bwrap and bash",
    kind: "bubblewrap",
    create: async () => shellBox(words, async () => {}),
    [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A container by the Engine API, and a command by an exec over a kept connection. */
export async function bareContainers(reference: string): Promise<Contender> {
  const engine = await Engine.open();
  return {
    name: "Engine API create and exec",
    kind: "docker",
    create: async () => {
      const id = await startContainer(engine, reference);
      return { command: () => engineExec(engine, id), stop: () => removeContainer(engine, id) };
    },
    [Symbol.asyncDispose]: async () => engine.close(),
  };
}

/** The same container, each command by the client program, as Harbor does it (through docker compose). */
export async function dockerProgram(reference: string): Promise<Contender> {
  const engine = await Engine.open();
  return {
    name: "docker exec",
    kind: "docker",
    create: async () => {
      const id = await startContainer(engine, reference);
      return {
        command: () => runProgram(["docker", "exec", id, "/bin/sh", "-c", "true"]),
        stop: () => removeContainer(engine, id),
      };
    },
    [Symbol.asyncDispose]: async () => engine.close(),
  };
}

/** A resident shell that prints a line after each command ends. */
async function shellBox([program = "", ...args]: readonly string[], stop: () => Promise<void>): Promise<Box> {
  const child: ChildProcess = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let waiting: (() => void) | undefined;
  child.stdout?.on("data", () => waiting?.());
  const command = async (): Promise<void> => {
    const answer = new Promise<void>(resolve => {
      waiting = resolve;
    });
    child.stdin?.write("/bin/true; echo done\n");
    await answer;
  };
  await command();
  return {
    command,
    stop: async () => {
      child.stdin?.end();
      await ended;
      await stop();
    },
  };
}

async function startContainer(engine: Engine, reference: string): Promise<string> {
  const HostConfig = { NetworkMode: "none", Init: true };
  const options = { Image: reference, Entrypoint: ["sleep", "3600"], HostConfig };
  const { value } = await engine.call("POST", "/containers/create", options);
  const { Id } = value as { Id: string };
  await engine.call("POST", `/containers/${Id}/start`);
  return Id;
}

async function removeContainer(engine: Engine, id: string): Promise<void> {
  await engine.call("DELETE", `/containers/${id}?force=true`);
}

/** Runs an exec as a client of the Engine API does: create it, start it, read its output to the end. */
async function engineExec(engine: Engine, container: string): Promise<void> {
  const asked = { Cmd: ["/bin/sh", "-c", "true"], AttachStdout: true, AttachStderr: true };
  const { value } = await engine.call("POST", `/containers/${container}/exec`, asked);
  await engine.call("POST", `/exec/${(value as { Id: string }).Id}/start`, { Detach: false, Tty: false });
}
