// `usage.json` of a phase: how long sandboxes, drivers and training worked, so that a run can say what it has cost
// without reading every episode again.
import { z } from "zod";
import { episodePrefix, evaluationPrefix, iterationPrefix, type PhasePrefix } from "../run/keys.ts";
import type { EpisodeRecord } from "../run/records.ts";
import { encodeJson, parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readPlan } from "./plan.ts";
import { readAttempts } from "./score.ts";

const Seconds = z.number().nonnegative();

export const PhaseUsage = z.strictObject({
  format: z.literal("t1-usage-1"),
  episodeCount: z.int().nonnegative(),
  groupCount: z.int().nonnegative(),
  sandboxSeconds: Seconds,
  driverSeconds: Seconds,
  rolloutSeconds: Seconds,
  training: z.strictObject({ seconds: Seconds, market: z.enum(["spot", "on-demand"]) }).optional(),
});
export type PhaseUsage = z.infer<typeof PhaseUsage>;

function usageKey(phase: PhasePrefix): string {
  return `${phase}usage.json`;
}

interface MeasureInput {
  readonly phase: PhasePrefix;
  readonly episodesPerDriver: number;
  readonly training?: PhaseUsage["training"];
}

/** Measures a finished phase and writes it down; a second measurement changes nothing. */
export async function recordUsage(
  input: MeasureInput,
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  const usage = await measureUsage(input, { store });
  await store.put(usageKey(input.phase), encodeJson(usage), { ifNoneMatch: "*" });
}

/** Of the attempts that lie in the store, also while the phase is at work. */
export async function measureUsage(
  { phase, episodesPerDriver, training }: MeasureInput,
  { store }: { readonly store: ObjectStore },
): Promise<PhaseUsage> {
  const plan = await readPlan(store, phase);
  const attempts = await Promise.all(
    plan.map(({ episode }) => readAttempts(store, episodePrefix(phase, episode))),
  );
  return {
    format: "t1-usage-1",
    ...measure(attempts, episodesPerDriver),
    ...(training !== undefined && { training }),
  };
}

/** @returns undefined where the phase was not measured, as on one machine and before its end */
export async function readUsage(store: ObjectStore, phase: PhasePrefix): Promise<PhaseUsage | undefined> {
  const found = await store.get(usageKey(phase));
  return found === undefined ? undefined : parseJson(found.body, usageKey(phase), PhaseUsage);
}

/**
 * Only episodes that ran count: one that was planned and never begun costs nothing.
 *
 * @param planned attempts of each episode; consecutive episodes shared a driver, which lived as long as the longest
 */
function measure(planned: readonly (readonly EpisodeRecord[])[], episodesPerDriver: number) {
  const attempts = planned.filter(records => records.length > 0);
  const secondsOf = attempts.map(records => sum(records.map(({ times }) => times.totalMs / 1000)));
  const groups = Array.from({ length: Math.ceil(attempts.length / episodesPerDriver) }, (_, group) =>
    Math.max(...secondsOf.slice(group * episodesPerDriver, (group + 1) * episodesPerDriver)),
  );
  const all = attempts.flat();
  const starts = all.map(({ startedAt }) => Date.parse(startedAt) / 1000);
  const ends = all.map(({ times }, index) => starts[index] + times.totalMs / 1000);
  return {
    episodeCount: attempts.length,
    groupCount: groups.length,
    sandboxSeconds: sum(secondsOf),
    driverSeconds: sum(groups),
    rolloutSeconds: all.length === 0 ? 0 : Math.max(...ends) - Math.min(...starts),
  };
}

/** Of every phase that was measured so far. */
export async function readUsages(store: ObjectStore, run: string, iterations: number): Promise<PhaseUsage[]> {
  const evaluations = await Array.fromAsync(store.folders(`runs/${run}/evaluations/`));
  const phases = [
    ...Array.from({ length: iterations }, (_, iteration) => iterationPrefix(run, iteration)),
    ...evaluations.map(name => evaluationPrefix(run, name)),
  ];
  const found = await Promise.all(phases.map(phase => readUsage(store, phase)));
  return found.filter(usage => usage !== undefined);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
