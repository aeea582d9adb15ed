// Chooses the episodes of an iteration or evaluation. Safe to run again: same inputs, same key, same bytes.
import { InputError } from "../failure/errors.ts";
import { deriveSeed } from "../random/seed.ts";
import { encodeJsonLines, readJsonLines } from "../store/json.ts";
import { iterationPrefix, type PhasePrefix, planKey } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readState } from "../store/run-state.ts";
import { putOnce } from "../store/write-once.ts";
import { type Cursor, START, takeTasks } from "../task/pool.ts";
import { writeEvaluationRecord } from "./phase-pool.ts";
import { PlannedEpisode } from "./records.ts";
import { readRun } from "./run-record.ts";
import { openPlannablePool, type PlannablePool } from "./stored-pool.ts";

export interface PlanOutput {
  readonly key: string;
  readonly episodeCount: number;
  /** Where the next iteration takes its tasks from. */
  readonly next: Cursor;
}

/** The next tasks of the run's pool, one episode each. */
export async function planIteration(
  { run, iteration }: { readonly run: string; readonly iteration: number },
  { store }: { readonly store: ObjectStore },
): Promise<PlanOutput> {
  const { config, pool: recorded } = await readRun(store, run);
  const pool = await openPlannablePool(recorded.folder, store);
  if (pool.names.length !== recorded.taskCount) {
    throw new InputError({
      what: "the pool changed since the run was started",
      where: recorded.folder,
      expected: `${recorded.taskCount} tasks, got ${pool.names.length}`,
      fix: "restore the pool, or start a new run",
    });
  }
  const { state } = await readState(store, run);
  const phase = iterationPrefix(run, iteration);
  // The pool's cursor has moved on: what was planned is in the store, and where the next one begins in the state.
  if (state.rolloutsClosed > iteration)
    return {
      key: planKey(phase),
      episodeCount: (await readPlan(store, phase)).length,
      next: state.pool,
    };
  const count = config.rollout.launch ?? config.rollout.episodes;
  const { names, next } = takeTasks(pool, state.pool, {
    count,
    seed: config.seed,
    shuffle: config.tasks.shuffle,
  });
  await writePlan(
    store,
    phase,
    pool,
    names.map(task => ({ task, repeat: 0 })),
    deriveSeed(config.seed, "iteration", iteration),
  );
  return { key: planKey(phase), episodeCount: names.length, next };
}

/** Every task of a pool, `repeats` times. */
export async function planEvaluation(
  {
    phase,
    poolFolder,
    repeats,
    seed,
  }: {
    readonly phase: PhasePrefix;
    readonly poolFolder: string;
    readonly repeats: number;
    readonly seed: number;
  },
  { store }: { readonly store: ObjectStore },
): Promise<PlanOutput> {
  const pool = await openPlannablePool(poolFolder, store);
  const episodes = Array.from({ length: repeats }, (_, repeat) =>
    pool.names.map(task => ({ task, repeat })),
  ).flat();
  await writeEvaluationRecord(store, phase, { pool: pool.folder, episodes: repeats });
  await writePlan(store, phase, pool, episodes, deriveSeed(seed, "evaluation"));
  return { key: planKey(phase), episodeCount: episodes.length, next: START };
}

export function readPlan(store: ObjectStore, phase: PhasePrefix): Promise<readonly PlannedEpisode[]> {
  return readJsonLines(store, planKey(phase), PlannedEpisode);
}

async function writePlan(
  store: ObjectStore,
  phase: PhasePrefix,
  pool: PlannablePool,
  chosen: readonly { readonly task: string; readonly repeat: number }[],
  seed: string,
): Promise<void> {
  const hashes = new Map<string, string>();
  for (const { task } of chosen) {
    if (!hashes.has(task)) hashes.set(task, await pool.hashOf(task));
  }
  const lines = chosen.map(
    ({ task, repeat }, episode): PlannedEpisode => ({
      episode,
      task,
      taskHash: hashes.get(task) ?? "",
      repeat,
      seed: deriveSeed(seed, "episode", episode),
    }),
  );
  await putOnce(store, planKey(phase), encodeJsonLines(lines));
}
