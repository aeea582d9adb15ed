// Evaluates one version of a run's policy on a pool: every task several times, failures repeated, rates with intervals.
import type { EvaluationSummary } from "../evaluation/summary.ts";
import { closedKey, evaluationPrefix, policyPrefix } from "../store/keys.ts";
import { type CollectServices, collect, openText } from "./collect.ts";
import { planEvaluation } from "./plan.ts";
import type { Stage } from "./run-events.ts";
import { readRun } from "./run-record.ts";
import { summarise } from "./summarise-evaluation.ts";

export interface EvaluateInput {
  readonly run: string;
  readonly name: string;
  readonly version: number;
  readonly poolFolder: string;
  /** Episodes per task. */
  readonly repeats: number;
}

/** Attempts per episode before it counts as missing: failures are rerun, so that few are. */
export const EVALUATION_ATTEMPTS = 6;

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
    const rollout = { ...config.rollout, attempts: EVALUATION_ATTEMPTS };
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
  return summarise({ run, name }, { store });
}
