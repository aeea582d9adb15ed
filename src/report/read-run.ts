// Everything a report says of a run but its sampled episodes: few objects per iteration, whatever its size.
import { z } from "zod";
import { AuditRecord, IterationMetrics } from "../learning/metrics.ts";
import { CONFIG_FILE } from "../model/checkpoint.ts";
import { type ModelConfig, parseModelConfig } from "../model/config.ts";
import { parameterShapes } from "../model/parameters.ts";
import { auditKey, closedKey, iterationPrefix, metricsKey, policyPrefix, timingsKey } from "../run/keys.ts";
import { ClosedPhase, Timings } from "../run/records.ts";
import { type RunRecord, readRun } from "../run/run-record.ts";
import { type RunState, readState } from "../run/run-state.ts";
import { parseJson } from "../store/json.ts";
import { readFolderFile, readManifest } from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { type EvaluationSeries, readEvaluations } from "./read-evaluations.ts";
import { mapSome, readOptional, tryRead } from "./read-parts.ts";

export interface IterationData {
  readonly iteration: number;
  readonly closed?: ClosedPhase;
  /** Missing until the iteration is trained. */
  readonly metrics?: IterationMetrics;
  /** Missing while it is at work, and where a runner died before it wrote them. */
  readonly timings?: Timings;
  readonly audit?: AuditRecord;
}

interface ModelSize {
  readonly config: ModelConfig;
  readonly parameterCount: number;
  /** Parameters that a token goes through. */
  readonly activeCount: number;
}

export interface RunData {
  readonly record: RunRecord;
  readonly state: RunState;
  /** Those that were closed, in order. */
  readonly iterations: readonly IterationData[];
  readonly evaluations: readonly EvaluationSeries[];
  readonly model?: ModelSize;
  /** A version of the policy whose folder is still there. */
  readonly policyFolder?: string;
  /** Objects that could not be read, and why. */
  readonly problems: readonly string[];
}

export type ClosedIteration = IterationData & { readonly closed: ClosedPhase };

/** Iterations whose closed list could be read. */
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
  const policyFolder = await findPolicy(store, run, state);
  const model = policyFolder === undefined ? undefined : await readModelSize(store, policyFolder, problems);
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

/** The newest policy that was kept; tokenizer and shape are those of every version. */
async function findPolicy(store: ObjectStore, run: string, state: RunState): Promise<string | undefined> {
  for (let version = state.policyPublished; version >= 0; version--) {
    const folder = policyPrefix(run, version);
    if ((await store.head(`${folder}manifest.json`)) !== undefined) return folder;
  }
  return undefined;
}

async function readModelSize(
  store: ObjectStore,
  folder: string,
  problems: string[],
): Promise<ModelSize | undefined> {
  const read = await tryRead(async () => {
    const manifest = await readManifest(store, folder);
    if (manifest === undefined) return undefined;
    const body = await readFolderFile(store, folder, manifest, CONFIG_FILE);
    return parseModelConfig(
      parseJson(body, `${folder}${CONFIG_FILE}`, z.unknown()),
      `${folder}${CONFIG_FILE}`,
    );
  });
  if (read.kind === "unreadable") problems.push(read.problem);
  return read.kind === "unreadable" || read.value === undefined ? undefined : sizeOf(read.value);
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
