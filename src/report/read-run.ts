// Reads everything of a run that a report shows, except its sampled episodes: few objects per iteration.
import type { z } from "zod";
import { AuditRecord, IterationMetrics } from "../learning/metrics.ts";
import { readModelConfig } from "../model/checkpoint.ts";
import type { ModelConfig } from "../model/config.ts";
import { parameterShapes } from "../model/parameters.ts";
import { auditKey, closedKey, iterationPrefix, metricsKey, timingsKey } from "../run/keys.ts";
import { ClosedPhase, Timings } from "../run/records.ts";
import { type RunRecord, readRun } from "../run/run-record.ts";
import { type RunState, readState } from "../run/run-state.ts";
import { openNewestPolicy } from "../run/version.ts";
import type { StoredFolder } from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type EvaluationSeries, readEvaluations } from "./read-evaluations.ts";
import { mapSome, readOptional, tryRead } from "./read-parts.ts";

export interface IterationData {
  readonly iteration: number;
  readonly closed?: ClosedPhase;
  /** Missing until the iteration is trained. */
  readonly metrics?: IterationMetrics;
  /** Missing while the iteration is at work, and when a runner died before it wrote them. */
  readonly timings?: Timings;
  readonly audit?: AuditRecord;
}

interface ModelSize {
  readonly config: ModelConfig;
  readonly parameterCount: number;
  /** Parameters that one token uses. */
  readonly activeCount: number;
}

export interface RunData {
  readonly record: RunRecord;
  readonly state: RunState;
  /** The closed ones, in order. */
  readonly iterations: readonly IterationData[];
  readonly evaluations: readonly EvaluationSeries[];
  readonly model?: ModelSize;
  /** The newest policy that was kept; all versions have the same tokenizer and shape. */
  readonly policyFolder?: StoredFolder;
  /** A message for each object that could not be read. */
  readonly problems: readonly string[];
}

export type ClosedIteration = IterationData & { readonly closed: ClosedPhase };

/** Iterations with a readable closed list. */
export function closedIterations(iterations: readonly IterationData[]): ClosedIteration[] {
  return iterations.flatMap(data => (data.closed === undefined ? [] : [{ ...data, closed: data.closed }]));
}

/** @throws InputError when there is no such run, or its record or state cannot be read */
export async function readRunData(store: ObjectStore, run: string): Promise<RunData> {
  const record = await readRun(store, run);
  const { state } = await readState(store, run);
  const problems: string[] = [];
  const numbers = Array.from({ length: state.rolloutsClosed }, (_, iteration) => iteration);
  const iterations = await mapSome(numbers, iteration => readIteration(store, run, iteration, problems));
  const evaluations = await readEvaluations(store, run, problems);
  const newest = await tryRead(() => openNewestPolicy(store, { run, version: state.policyPublished }));
  if (newest.kind === "unreadable") problems.push(newest.problem);
  const policyFolder = newest.kind === "read" ? newest.value : undefined;
  const model = policyFolder === undefined ? undefined : await readModelSize(policyFolder, problems);
  return { record, state, iterations, evaluations, model, policyFolder, problems };
}

async function readIteration(
  store: ObjectStore,
  run: string,
  iteration: number,
  problems: string[],
): Promise<IterationData> {
  const phase = iterationPrefix(run, iteration);
  const read = <Schema extends z.ZodType>(key: string, schema: Schema) =>
    readOptional(store, key, schema, problems);
  const [closed, metrics, timings, audit] = await Promise.all([
    read(closedKey(phase), ClosedPhase),
    read(metricsKey(phase), IterationMetrics),
    read(timingsKey(phase), Timings),
    read(auditKey(phase), AuditRecord),
  ]);
  return { iteration, closed, metrics, timings, audit };
}

async function readModelSize(folder: StoredFolder, problems: string[]): Promise<ModelSize | undefined> {
  const read = await tryRead(() => readModelConfig(folder));
  if (read.kind === "read") return sizeOf(read.value);
  problems.push(read.problem);
  return undefined;
}

function sizeOf(config: ModelConfig): ModelSize {
  let parameterCount = 0;
  let idle = 0;
  for (const [name, shape] of parameterShapes(config, "language")) {
    const size = shape.reduce((product, dim) => product * dim, 1);
    parameterCount += size;
    const { experts } = config;
    if (experts && name.includes(".experts.")) idle += size * (1 - experts.perToken / experts.count);
  }
  return { config, parameterCount, activeCount: Math.round(parameterCount - idle) };
}
