// Grades episodes again by what was kept of them, without the agent: another mode of the verifier, other tests of a task
// that was wrong, another reward. What was scored stays as it is; new scores lie beside it.
import { join } from "node:path";
import { InputError, InvariantError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import { readAdmitted } from "../run/claim.ts";
import {
  type AttemptPrefix,
  attemptPrefix,
  episodePrefix,
  keptFilesKey,
  keptIndexKey,
  type PhasePrefix,
  rewardKey,
} from "../run/keys.ts";
import { type EpisodeRecord, RewardRecord } from "../run/records.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import type { RewardConfig } from "../settings/grading-config.ts";
import { encodeJson, readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readHashed } from "../store/read-hashed.ts";
import { KeptIndex } from "../verifier/keep-files.ts";
import { regradeHash, rewardConfigHash } from "../verifier/reward.ts";
import type { VerifierMode, VerifierRun } from "../verifier/run-verifier.ts";
import { combineReports, computeStepsReward, passesGate } from "../verifier/step-rewards.ts";
import { joinTampering } from "../verifier/tampering.ts";
import { readEpisodeRecord } from "./episode-record.ts";
import { gradeStep } from "./grade.ts";
import { readPlan } from "./plan.ts";
import { type PreparedTask, prepareTask } from "./prepare.ts";
import type { ImageServices } from "./task-image.ts";

export interface RegradeInput {
  readonly phase: PhasePrefix;
  readonly poolFolder: string;
  readonly mode: VerifierMode;
  readonly rewardConfig: RewardConfig;
  /** Only episodes of this task. */
  readonly task?: string | undefined;
  readonly now: () => Date;
}

export interface RegradedEpisode {
  readonly episode: number;
  readonly task: string;
  /** As it was scored; undefined when it was not. */
  readonly before: number | undefined;
  readonly after: number | undefined;
  readonly cause?: string;
  /** Where the new record lies; undefined when there is nothing to grade. */
  readonly key?: string;
}

/**
 * Episodes in order; those without kept files are named, not graded.
 *
 * @param services.onEpisode called after each
 * @throws Failure when a sandbox cannot be had; what was graded until then stays
 */
export async function regrade(
  { phase, poolFolder, mode, rewardConfig, task: only, now }: RegradeInput,
  services: {
    readonly store: ObjectStore;
    readonly sandboxes: SandboxProvider;
    readonly images: ImageServices;
    readonly onEpisode: (episode: RegradedEpisode) => void;
  },
): Promise<readonly RegradedEpisode[]> {
  const { store, onEpisode } = services;
  const plan = (await readPlan(store, phase)).filter(({ task }) => only === undefined || task === only);
  const prepared = new Map<string, PreparedTask>();
  const results: RegradedEpisode[] = [];
  for (const { episode, task } of plan) {
    const prefix = episodePrefix(phase, episode);
    const attempt = await readAdmitted(store, prefix);
    if (attempt === undefined) continue;
    const at = attemptPrefix(prefix, attempt);
    const record = await readEpisodeRecord(store, at);
    const before = await readBefore(store, at, rewardConfig);
    const facts = { episode, task, before };
    if (countKept(record) === 0) {
      results.push({ ...facts, after: undefined, cause: "nothing of it was kept" });
    } else {
      const known =
        prepared.get(task) ??
        (await prepareTask(join(poolFolder, task), { ...services.images, demonstration: false }));
      prepared.set(task, known);
      const runs = await regradeSteps(record, at, known, mode, services);
      const written = await writeRecord(runs, { at, prepared: known, mode, rewardConfig, now }, store);
      results.push({ ...facts, ...written });
    }
    const last = results.at(-1);
    if (last !== undefined) onEpisode(last);
  }
  return results;
}

function keptOf({ verifier, steps }: EpisodeRecord) {
  return steps === undefined ? [verifier?.kept] : steps.list.map(step => step.kept);
}

/** Steps whose files were kept, from the first on. */
function countKept(record: EpisodeRecord): number {
  const all = keptOf(record);
  const gap = all.findIndex(kept => kept === undefined || "notKept" in kept);
  return gap < 0 ? all.length : gap;
}

/** @param index of a step whose files were kept */
function keptHash(record: EpisodeRecord, index: number): string {
  const kept = keptOf(record)[index];
  if (kept === undefined || "notKept" in kept)
    throw new InvariantError("nothing was kept of this step", { index });
  return kept.sha256;
}

async function regradeSteps(
  record: EpisodeRecord,
  at: AttemptPrefix,
  prepared: PreparedTask,
  mode: VerifierMode,
  services: { readonly store: ObjectStore; readonly sandboxes: SandboxProvider },
): Promise<readonly VerifierRun[]> {
  const runs: VerifierRun[] = [];
  for (let index = 0; index < countKept(record); index++) {
    const step = prepared.steps[index];
    if (step === undefined) break;
    const sandbox = await restore(at, index, keptHash(record, index), prepared, services);
    try {
      const run = await gradeStep(sandbox, { prepared, index, mode, keepFiles: false }, services);
      runs.push(run);
      if (!passesGate(run.report, step.step.minReward)) break;
    } finally {
      await sandbox[Symbol.asyncDispose]();
    }
  }
  return runs;
}

const LEASE_MS = 3_600_000;
const REMOVE_TIMEOUT_MS = 120_000;

/** A sandbox as the agent left it at the end of a step, but for what its verifier had left out. */
async function restore(
  at: AttemptPrefix,
  index: number,
  filesSha256: string,
  { spec, steps }: PreparedTask,
  { store, sandboxes }: { readonly store: ObjectStore; readonly sandboxes: SandboxProvider },
): Promise<Sandbox> {
  const files = await readHashed(
    store,
    keptFilesKey(at, index),
    filesSha256,
    "not the files that were kept of the episode",
  );
  const { deleted } = await readJson(store, keptIndexKey(at, index), KeptIndex);
  const timeoutMs = steps[index]?.step.verifier.timeoutMs ?? LEASE_MS;
  const sandbox = await sandboxes.create(spec, {
    id: `regrade.${sha256(Buffer.from(`${at}${index}`)).slice(0, 16)}`,
    generation: 1 + (Date.now() % 1e9),
    deadlineMs: Date.now() + 4 * timeoutMs + LEASE_MS,
  });
  try {
    if (deleted.length > 0)
      await sandbox.exec("xargs -0 rm -rf --", {
        timeoutMs: REMOVE_TIMEOUT_MS,
        cwd: "/",
        stdin: Buffer.from(deleted.map(path => `${path}\0`).join("")),
      });
    const uploaded = await sandbox.upload(files, "/");
    if ("unpacked" in uploaded) return sandbox;
    throw new InputError({
      what: `kept files do not fit into the task's sandbox: ${uploaded.refused}`,
      where: keptFilesKey(at, index),
      fix: "regrade with the task as it was, or leave this one out by --task",
    });
  } catch (error) {
    await sandbox[Symbol.asyncDispose]();
    throw error;
  }
}

async function writeRecord(
  runs: readonly VerifierRun[],
  input: {
    readonly at: AttemptPrefix;
    readonly prepared: PreparedTask;
    readonly mode: VerifierMode;
    readonly rewardConfig: RewardConfig;
    readonly now: () => Date;
  },
  store: ObjectStore,
): Promise<Pick<RegradedEpisode, "after" | "cause" | "key">> {
  const { at, prepared, mode, rewardConfig, now } = input;
  const strategy = prepared.task.config.rewardStrategy;
  const named = runs.map(({ report }, index) => ({ name: prepared.steps[index]?.step.name, report }));
  const report = combineReports(named, strategy);
  if (report === undefined) return { after: undefined, cause: "nothing of it was kept" };
  const reward = computeStepsReward(
    runs.map(run => run.report),
    strategy,
    rewardConfig,
  );
  const tampering = joinTampering(runs.flatMap(run => run.tampering ?? []));
  const record: RewardRecord = {
    config: rewardConfig,
    reward,
    regraded: {
      mode,
      gradedAt: now().toISOString(),
      report,
      ...(tampering !== undefined && { tampering }),
    },
  };
  // Under the first free name: an earlier grading is never written over.
  for (let number = 1; ; number++) {
    const key = rewardKey(at, regradeHash(rewardConfig, mode, number));
    if (!(await store.put(key, encodeJson(record), { ifNoneMatch: "*" })).written) continue;
    return { after: reward.value, key, ...(report.cause !== undefined && { cause: report.cause }) };
  }
}

async function readBefore(
  store: ObjectStore,
  at: AttemptPrefix,
  rewardConfig: RewardConfig,
): Promise<number | undefined> {
  const key = rewardKey(at, rewardConfigHash(rewardConfig));
  if ((await store.head(key)) === undefined) return undefined;
  return (await readJson(store, key, RewardRecord)).reward.value;
}
