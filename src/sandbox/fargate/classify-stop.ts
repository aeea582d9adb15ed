// Why a task stopped, as one of a few classes. Several fields are read, since each of them was seen missing:
// stopCode is left out of events now and then (aws/containers-roadmap#1565).

export interface StoppedTask {
  readonly stopCode?: string;
  readonly stoppedReason?: string;
  readonly startedAt?: string;
  readonly containers?: readonly { readonly exitCode?: number; readonly reason?: string }[];
}

const STOP_CLASSES = {
  interrupted: "Spot took the capacity back: play it again, on demand",
  "never-started": "it stopped before anything ran: image, capacity, addresses",
  "out-of-memory": "a container used more memory than it has",
  stopped: "somebody asked for it: its driver, the sweeper, an aborted execution",
  failed: "a container ended with an error",
  ended: "its containers ended by themselves",
} as const;
export type StopClass = keyof typeof STOP_CLASSES;

export function classifyStop({
  stopCode,
  stoppedReason,
  startedAt,
  containers = [],
}: StoppedTask): StopClass {
  const reasons = [stoppedReason, ...containers.map(({ reason }) => reason)].join("\n");
  if (stopCode === "SpotInterruption" || /\bspot\b.*interrupt/i.test(reasons)) return "interrupted";
  if (/OutOfMemory|out of memory/i.test(reasons)) return "out-of-memory";
  if (stopCode === "TaskFailedToStart" || /CannotPull|ResourceInitializationError/.test(reasons))
    return "never-started";
  if (stopCode === "UserInitiated" || stopCode === "ServiceSchedulerInitiated") return "stopped";
  if (containers.some(({ exitCode }) => exitCode !== undefined && exitCode !== 0)) return "failed";
  return startedAt === undefined ? "never-started" : "ended";
}
