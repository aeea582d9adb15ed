// `t1 run watch`: a line per iteration as it ends, and meanwhile the states that are at work.
import { setTimeout as sleep } from "node:timers/promises";
import { readMetrics } from "../learning/metrics.ts";
import { executionsFolder, statesAtWork } from "../local/journals.ts";
import { iterationPrefix, metricsKey } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { Progress } from "./progress.ts";
import { iterationLine } from "./run-progress.ts";

const POLL_MS = 500;

/** Iterations go to stdout, what is at work to stderr. Ends when the run is done or stopped. */
export async function watchRun(store: ObjectStore, run: string, json: boolean): Promise<void> {
  const { config } = await readRun(store, run);
  const { iterations } = config.training;
  const folder = executionsFolder(store, run);
  const progress = new Progress({ stream: process.stderr });
  let shown = "";
  for (let iteration = 0; iteration < iterations; ) {
    const phase = iterationPrefix(run, iteration);
    if ((await store.head(metricsKey(phase))) !== undefined) {
      const metrics = await readMetrics(store, phase);
      progress.clear();
      process.stdout.write(iterationLine({ iteration, iterations, json }, metrics));
      iteration++;
      continue;
    }
    const { stopped } = (await readState(store, run)).state;
    if (stopped !== undefined) {
      progress.clear();
      process.stderr.write(`stopped: ${stopped.reason}\n`);
      return;
    }
    const atWork = describe(folder);
    if (atWork !== shown) progress.begin(atWork === "" ? "no runner of this machine is at work" : atWork);
    else progress.tick();
    shown = atWork;
    await sleep(POLL_MS);
  }
  progress.clear();
}

/** `r-s1: Iterate > r-s1-i000003: Rollouts`; empty where the run is at work elsewhere. */
function describe(folder: string): string {
  return statesAtWork(folder)
    .map(({ execution, states }) => `${execution}: ${states.join(", ")}`)
    .join(" > ");
}
