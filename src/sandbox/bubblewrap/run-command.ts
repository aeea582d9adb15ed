// Runs one command in a sandbox by its entry process.
import { type ProcessResult, type ProcessRun, runProcess } from "../run-process.ts";
import type { Command, EntryProcess } from "./entry-process.ts";
import type { Spawner } from "./spawner.ts";

/** A sandbox as commands see it. */
export interface Entrance {
  readonly spawner: Spawner;
  readonly entryProcess: EntryProcess;
}

/**
 * This process does not stay alive for a command without a limit, which lives as long as the sandbox.
 *
 * @throws the signal's reason, when it aborts and the group has ended; Failure SandboxLost when the sandbox ends before
 * the command; Failure SandboxUnavailable when this machine has no process or descriptor left
 */
export function runCommand(
  command: Command,
  run: ProcessRun,
  entrance: Entrance,
): Promise<Omit<ProcessResult, "isAborted">> {
  const running = runToEnd(command, run, entrance);
  return run.limitMs === undefined ? running : entrance.spawner.awaited(running);
}

async function runToEnd(
  command: Command,
  run: ProcessRun,
  { spawner, entryProcess }: Entrance,
): ReturnType<typeof runCommand> {
  run.signal?.throwIfAborted();
  const pipes = await spawner.pipes.open({ input: run.stdin !== undefined });
  const { end, durationMs, isAborted } = await runProcess(
    { ...entryProcess.start(command, pipes), pipes },
    run,
  );
  if (isAborted) throw run.signal?.reason;
  return { end, durationMs };
}
