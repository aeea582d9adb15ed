// `t1 run watch`: a line per iteration as it ends, and meanwhile the states that are at work.
import { setTimeout as sleep } from "node:timers/promises";
import { readMetrics } from "../learning/metrics.ts";
import { executionsFolder, statesAtWork } from "../local/journals.ts";
import { readPlan } from "../rollout/plan.ts";
import { iterationPrefix, metricsKey, type PhasePrefix } from "../run/keys.ts";
import { liveOwner } from "../run/owner-lease.ts";
import type { Stage } from "../run/run-events.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import { findState } from "../stages/states.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { Progress } from "./progress.ts";
import { iterationLine } from "./run-progress.ts";

const POLL_MS = 500;
/** Of a bucket, where each look is several requests. */
const FAR_POLL_MS = 10_000;

/** Iterations go to stdout, what is at work to stderr. Ends when the run is done, stopped, or nobody works on it. */
export async function watchRun(store: ObjectStore, run: string, json: boolean): Promise<void> {
  const { config } = await readRun(store, run);
  const { iterations } = config.training;
  const progress = new Progress({ stream: process.stderr });
  const end = (text: string): void => {
    progress.clear();
    process.stderr.write(`${text}\n`);
  };
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
    if (stopped !== undefined) return end(`stopped: ${stopped.reason}; t1 run resume ${run} goes on`);
    const owner = await liveOwner(store, run, Date.now);
    if (owner === undefined) {
      // Its last iteration may have ended since we looked for it.
      if ((await store.head(metricsKey(phase))) !== undefined) continue;
      return end(
        `nobody works on ${run}: ${iteration} of ${iterations} iterations are done; t1 run resume ${run} goes on`,
      );
    }
    const stage = stageAtWork(store, run);
    const label = `iteration ${iteration + 1}  ${stage ?? `at work by ${owner.holder}`}`;
    const episodes = stage === "rollout" ? await countEpisodes(store, phase) : undefined;
    if (label !== shown) progress.begin(label, episodes?.planned);
    if (episodes === undefined) progress.tick();
    else progress.advance(episodes.done, episodes.planned);
    shown = label;
    await sleep(store.url.startsWith("file:") ? POLL_MS : FAR_POLL_MS);
  }
  progress.clear();
}

/** Undefined where the run is at work on another machine, or between two stages. */
function stageAtWork(store: ObjectStore, run: string): Stage | undefined {
  return statesAtWork(executionsFolder(store, run))
    .flatMap(({ states }) => states)
    .map(state => findState(state)?.stage)
    .findLast(stage => stage !== undefined);
}

async function countEpisodes(
  store: ObjectStore,
  phase: PhasePrefix,
): Promise<{ readonly done: number; readonly planned: number }> {
  const planned = (await readPlan(store, phase)).length;
  let done = 0;
  for await (const { key } of store.list(`${phase}episodes/`)) if (key.endsWith("/admitted.json")) done++;
  return { done, planned };
}
