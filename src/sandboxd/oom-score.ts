// When memory runs out, the kernel ends what the agent started rather than the daemon.
import { openSync, readSync, writeSync } from "node:fs";

/** On a scale of -1000 to 1000: as if a command used half of the memory more than it does (proc_pid_oom_score_adj(5)). */
const COMMAND_SCORE = "500";

/** Opened before the daemon is hidden, because its own files in /proc belong to the machine's root then. */
const score = openSync("/proc/self/oom_score_adj", "r+");
const ownScore = Buffer.alloc(8);
const ownScoreBytes = readSync(score, ownScore, 0, ownScore.length, 0);

/** Starts a process, which takes the score of the moment with it. A process may always raise its own, and take that back. */
export function withCommandScore<Result>(start: () => Result): Result {
  writeSync(score, COMMAND_SCORE, 0);
  try {
    return start();
  } finally {
    writeSync(score, ownScore, 0, ownScoreBytes, 0);
  }
}
