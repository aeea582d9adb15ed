// Evaluates one version of a run's policy on a pool: every task several times, failures repeated, rates with intervals.
import {
  compareEvaluations,
  type EvaluatedEpisode,
  type EvaluationSummary,
  summariseEvaluation,
} from "../evaluation/summary.ts";
import { deriveSeed } from "../random/seed.ts";
import { encodeJson } from "../store/json.ts";
import { closedKey, evaluationPrefix, policyPrefix, summaryKey } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { readClosed } from "./close.ts";
import { type CollectServices, collect, openText } from "./collect.ts";
import { planEvaluation } from "./plan.ts";
import type { ClosedPhase } from "./records.ts";
import type { Stage } from "./run-events.ts";
import { readRun } from "./run-record.ts";

export interface EvaluateInput {
  readonly run: string;
  readonly name: string;
  readonly version: number;
  readonly poolFolder: string;
  /** Episodes per task. */
  readonly repeats: number;
}

/** Attempts per episode before it counts as missing: failures are rerun, so that few are. */
const ATTEMPTS = 6;

/** Runs what is not there yet; an evaluation that was closed is only read. */
export async function evaluate(
  { run, name, version, poolFolder, repeats }: EvaluateInput,
  services: CollectServices,
): Promise<EvaluationSummary> {
  const { store, onEvent } = services;
  const { config } = await readRun(store, run);
  const phase = evaluationPrefix(run, name);
  if ((await store.head(closedKey(phase))) === undefined) {
    const policy = { version, prefix: policyPrefix(run, version) };
    const stage = <T>(stageName: Stage, work: () => Promise<T>, total?: number): Promise<T> => {
      onEvent({ kind: "stage", iteration: version, stage: stageName, total });
      return work();
    };
    await planEvaluation({ phase, poolFolder, repeats, seed: config.seed }, { store });
    const rollout = { ...config.rollout, attempts: ATTEMPTS };
    const text = await openText(store, policy, config);
    await collect(
      {
        phase,
        poolFolder,
        config: { ...config, rollout },
        policy,
        text,
        demonstrations: false,
        minimum: 1,
        stage,
      },
      services,
    );
  }
  const summary = summariseEvaluation(
    evaluatedEpisodes(await readClosed(store, phase)),
    deriveSeed(config.seed, "evaluation intervals"),
  );
  await putOnce(store, summaryKey(phase), encodeJson(summary));
  return summary;
}

/** Paired difference of two closed evaluations of the same pool. */
export async function compare(store: ObjectStore, run: string, before: string, after: string) {
  const { config } = await readRun(store, run);
  const read = async (name: string) =>
    evaluatedEpisodes(await readClosed(store, evaluationPrefix(run, name)));
  return compareEvaluations(
    await read(before),
    await read(after),
    deriveSeed(config.seed, "evaluation intervals"),
  );
}

function evaluatedEpisodes({ episodes, failed }: ClosedPhase): EvaluatedEpisode[] {
  const done = episodes.map(({ task, labels, resolved, reward }) => ({
    task,
    groups: groupsOf(labels),
    outcome: { resolved, reward },
  }));
  return [...done, ...failed.map(({ task, labels }) => ({ task, groups: groupsOf(labels) }))];
}

/** Labels that few tasks share are no groups. */
function groupsOf({ kind, families }: ClosedPhase["episodes"][number]["labels"]): string[] {
  const list = Array.isArray(families) ? families.map(family => `family ${family}`) : [];
  return typeof kind === "string" ? [`kind ${kind}`, ...list] : list;
}
