// What a run does next, read from the store alone: whoever runs it can be stopped and started at any time.

import type { ObjectStore } from "../store/object-store.ts";
import { evaluationDue } from "./evaluation-due.ts";
import { evaluationPrefix, summaryKey } from "./keys.ts";
import { readRun } from "./run-record.ts";
import { readState } from "./run-state.ts";

export interface NextStep {
  readonly next: "iterate" | "evaluate" | "done" | "stopped" | "budget-spent";
  /** To run; equal to the version of the newest policy. */
  readonly iteration: number;
  /** Whether it is the run's last. */
  readonly last: boolean;
  /** Name of the evaluation that is due. */
  readonly evaluation?: string;
}

/** @param spentUsd so far; compared with the budget before anything is begun */
export async function whatNext(
  {
    run,
    budgetUsd,
    spentUsd,
  }: { readonly run: string; readonly budgetUsd?: number; readonly spentUsd: number },
  { store }: { readonly store: ObjectStore },
): Promise<NextStep> {
  const { config } = await readRun(store, run);
  const { state } = await readState(store, run);
  const iteration = state.policyPublished;
  const { iterations } = config.training;
  const at = { iteration, last: iteration + 1 >= iterations };
  if (state.stopped !== undefined) return { next: "stopped", ...at };
  const due = evaluationDue(config, iteration);
  const evaluation =
    due !== undefined && (await store.head(summaryKey(evaluationPrefix(run, due)))) === undefined
      ? due
      : undefined;
  if (iteration >= iterations && evaluation === undefined) return { next: "done", ...at };
  if (budgetUsd !== undefined && spentUsd >= budgetUsd) return { next: "budget-spent", ...at };
  return evaluation === undefined ? { next: "iterate", ...at } : { next: "evaluate", ...at, evaluation };
}
