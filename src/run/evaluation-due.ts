// Which versions of a policy the run evaluates by itself, and what those evaluations are called.
import type { RunConfig } from "../config/run-config.ts";

/** @returns the name of the evaluation, undefined where none is due for this version */
export function evaluationDue(
  { evaluation }: Pick<RunConfig, "evaluation">,
  version: number,
): string | undefined {
  if (evaluation === undefined || version % evaluation.every !== 0) return undefined;
  return evaluationName(version);
}

export function evaluationName(version: number): string {
  return `during-${`${version}`.padStart(6, "0")}`;
}
