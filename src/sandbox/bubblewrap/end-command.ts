// Ends a command before its time: politely at first, then not, and with all of its process group.
import { hasCode } from "../../files/file-errors.ts";
import { isDoneWithin } from "../done-within.ts";
import type { StartedCommand } from "./porter.ts";
import { endTracer } from "./tracer.ts";

/** From TERM to KILL: enough for a program to write its files, too little to matter in an episode. */
const TERM_PATIENCE_MS = 500;
/** From KILL until it is given up: only a process inside a hanging system call lives that long. */
const KILL_PATIENCE_MS = 5_000;

/** @throws Failure SandboxLost when the sandbox ends first */
export async function endCommand(command: StartedCommand): Promise<void> {
  const pid = await command.pid();
  if (pid === undefined) return;
  let hasEnded = false;
  const ended = command.ended.finally(() => {
    hasEnded = true;
  });
  const isOver = (): boolean => hasEnded && !signalGroup(pid, 0);
  const end = async (): Promise<void> => {
    signalGroup(pid, "SIGTERM");
    if (await isDoneWithin(isOver, TERM_PATIENCE_MS)) return;
    signalGroup(pid, "SIGKILL");
    const isOverUntraced = (): boolean => {
      if (isOver()) return true;
      if (!hasEnded) endTracer(pid);
      return false;
    };
    await isDoneWithin(isOverUntraced, KILL_PATIENCE_MS);
  };
  await Promise.all([end(), ended]);
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
