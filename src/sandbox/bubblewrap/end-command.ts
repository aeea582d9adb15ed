// Ends a command before its time: politely at first, then not, and with all of its process group.
//
// Outside stands nsenter, which waits for the command, inside the command leads a group and session of its own. Only
// the latter is signalled: were nsenter killed first, the command would be left to this machine's process 1, which in
// a container may be one that reaps nobody.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "../../store/file-errors.ts";
import type { HostProcess } from "./host-process.ts";

/** From TERM to KILL: enough for a program to write its files, too little to matter in an episode. */
const TERM_PATIENCE_MS = 500;
/** From KILL until it is given up: only a process inside a hanging system call lives that long. */
const KILL_PATIENCE_MS = 5_000;
const POLL_MS = 5;

export async function endCommand(outer: HostProcess): Promise<void> {
  const command = findChild(outer.pid) ?? (await findLateChild(outer));
  if (command === undefined) {
    if (!hasEnded(outer)) outer.kill("SIGKILL");
    return;
  }
  const isOver = () => hasEnded(outer) && !signalGroup(command, 0);
  signalGroup(command, "SIGTERM");
  if (await poll(isOver, TERM_PATIENCE_MS)) return;
  signalGroup(command, "SIGKILL");
  // A command that stops itself stops nsenter too.
  outer.kill("SIGCONT");
  await poll(isOver, KILL_PATIENCE_MS);
}

/** For a command that was given too little time to start: nsenter must not start it after we have looked. */
async function findLateChild(outer: HostProcess): Promise<number | undefined> {
  if (!outer.kill("SIGSTOP")) return undefined;
  await sleep(POLL_MS); // what was about to begin is there by now
  const command = findChild(outer.pid);
  if (command !== undefined) outer.kill("SIGCONT");
  return command;
}

/** Signals what nsenter started, and its group. */
export function signalCommand(outerPid: number, signal: NodeJS.Signals): void {
  const command = findChild(outerPid);
  if (command !== undefined) signalGroup(command, signal);
}

function hasEnded({ exitCode, signalCode }: HostProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Signals a group and its leader, which is not a leader yet when it has just started. @returns whether any is there */
function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  const results = [send(-leader, signal), send(leader, signal)];
  return results.includes(true);
}

function send(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    return !hasCode(error, "ESRCH");
  }
}

function findChild(parent: number): number | undefined {
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      if (ppid === `${parent}`) return Number(name);
    } catch {
      // ended while we looked
    }
  }
  return undefined;
}

async function poll(isDone: () => boolean, patienceMs: number): Promise<boolean> {
  const until = performance.now() + patienceMs;
  while (!isDone()) {
    if (performance.now() >= until) return false;
    await sleep(POLL_MS);
  }
  return true;
}
