// Chooses the episodes of an iteration or evaluation. Safe to run again: same inputs, same key, same bytes.
import { isDeepStrictEqual } from "node:util";
import { InputError } from "../failure/errors.ts";
import { deriveSeed } from "../random/seed.ts";
import { iterationPrefix, type PhasePrefix, planKey } from "../run/keys.ts";
import { phasePool, writeEvaluationRecord } from "../run/phase-pool.ts";
import { PlannedEpisode } from "../run/records.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import { openPlannablePool, type PlannablePool } from "../run/stored-pool.ts";
import { LAST_NUMBER } from "../settings/numbers.ts";
import { encodeJsonLines, readJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { type Cursor, takeTasks } from "../task/pool.ts";
import { methodOf } from "../training/algorithms.ts";

/**
 * Plans the next tasks of the run's pool, one episode each.
 *
 * @returns `next` is where the next iteration takes its tasks from
 */
export async function planIteration(
  { run, iteration }: { readonly run: string; readonly iteration: number },
  { store }: { readonly store: ObjectStore },
): Promise<{ readonly lines: readonly PlannedEpisode[]; readonly next: Cursor }> {
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
  // The pool's cursor has moved on: the store has what was planned, the state has where the next iteration begins.
  if (state.rolloutsClosed > iteration) return { lines: await readPlan(store, phase), next: state.pool };
  const count = config.rollout.launch ?? config.rollout.episodes;
  const { groupSize } = methodOf(config);
  const { names, next } = takeTasks(pool, state.pool, {
    count: Math.ceil(count / groupSize),
    seed: config.seed,
    shuffle: config.tasks.shuffle,
  });
  const lines = await planLines(
    pool,
    inGroups(names, groupSize),
    deriveSeed(config.seed, "iteration", iteration),
  );
  await putOnce(store, planKey(phase), encodeJsonLines(lines));
  return { lines, next };
}

export interface EvaluationPlan {
  readonly phase: PhasePrefix;
  readonly poolFolder: string;
  /** Episodes per task. */
  readonly repeats: number;
  readonly seed: number;
}

/** Plans every task of a pool, `repeats` times. @throws InputError when the phase was planned with other tasks */
export async function planEvaluation(
  evaluation: EvaluationPlan,
  { store }: { readonly store: ObjectStore },
): Promise<readonly PlannedEpisode[]> {
  const { phase, repeats } = evaluation;
  const { folder, lines } = await evaluationLines(evaluation, store);
  await assertSamePlan(store, phase, folder, lines);
  await writeEvaluationRecord(store, phase, { pool: folder, episodes: repeats });
  await putOnce(store, planKey(phase), encodeJsonLines(lines));
  return lines;
}

/** Pools share names, and tasks change: what was evaluated must be what is asked for. @throws InputError if it is not */
export async function assertEvaluationOf(
  evaluation: EvaluationPlan,
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  const { folder, lines } = await evaluationLines(evaluation, store);
  await assertSamePlan(store, evaluation.phase, folder, lines);
}

async function evaluationLines({ poolFolder, repeats, seed }: EvaluationPlan, store: ObjectStore) {
  const pool = await openPlannablePool(poolFolder, store);
  if (repeats * pool.names.length > LAST_NUMBER)
    throw new InputError({
      what: "too many episodes for an evaluation",
      where: pool.folder,
      expected: `at most ${LAST_NUMBER}, got ${repeats} of each of ${pool.names.length} tasks`,
      fix: "ask for fewer episodes per task",
    });
  const chosen = Array.from({ length: repeats }, (_, repeat) =>
    pool.names.map(task => ({ task, repeat })),
  ).flat();
  return { folder: pool.folder, lines: await planLines(pool, chosen, deriveSeed(seed, "evaluation")) };
}

/** A phase that was not planned yet may be planned anyhow. */
async function assertSamePlan(
  store: ObjectStore,
  phase: PhasePrefix,
  folder: string,
  lines: readonly PlannedEpisode[],
): Promise<void> {
  if ((await store.head(planKey(phase))) === undefined) return;
  const planned = await readPlan(store, phase);
  if (isDeepStrictEqual(planned, lines)) return;
  const hashes = (of: readonly PlannedEpisode[]) =>
    new Map(of.map(({ task, taskHash }) => [task, taskHash] as const));
  const [then, now] = [hashes(planned), hashes(lines)];
  const differs = [...new Set([...then.keys(), ...now.keys()])].find(
    task => then.get(task) !== now.get(task),
  );
  throw new InputError({
    what: "this evaluation has other tasks",
    where: phase,
    expected: `expected those of ${await phasePool(phase, { store })} as they were when it was planned, got ${folder}, which differs${differs === undefined ? "" : `, e.g. in ${differs}`}`,
    fix: "evaluate this pool under another name (t1 evaluate --name), or bring the tasks back",
  });
}

/** @throws InputError when it is not there, or not whole: what it does not list would not exist */
export async function readPlan(store: ObjectStore, phase: PhasePrefix): Promise<readonly PlannedEpisode[]> {
  const plan = await readJsonLines(store, planKey(phase), PlannedEpisode);
  const wrong = plan.findIndex(({ episode }, index) => episode !== index);
  if (plan.length > 0 && wrong === -1) return plan;
  throw new InputError({
    what: "corrupt plan",
    where: planKey(phase),
    expected: `expected episodes numbered from 0, got ${plan.length === 0 ? "none" : `${plan[wrong].episode} in line ${wrong + 1}`}`,
    fix: "restore it from a copy",
  });
}

async function planLines(
  pool: PlannablePool,
  chosen: readonly { readonly task: string; readonly repeat: number }[],
  seed: string,
): Promise<PlannedEpisode[]> {
  const hashes = new Map<string, string>();
  for (const { task } of chosen) {
    if (!hashes.has(task)) hashes.set(task, await pool.hashOf(task));
  }
  return chosen.map(
    ({ task, repeat }, episode): PlannedEpisode => ({
      episode,
      task,
      taskHash: hashes.get(task) ?? "",
      repeat,
      seed: deriveSeed(seed, "episode", episode),
    }),
  );
}

/** Episodes of one task follow each other; a task that a small pool gives twice goes on counting its repeats. */
function inGroups(
  names: readonly string[],
  size: number,
): { readonly task: string; readonly repeat: number }[] {
  const begun = new Map<string, number>();
  return names.flatMap(task =>
    Array.from({ length: size }, () => {
      const repeat = begun.get(task) ?? 0;
      begun.set(task, repeat + 1);
      return { task, repeat };
    }),
  );
}
