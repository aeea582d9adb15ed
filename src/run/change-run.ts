// Changes settings of a run that was started: `run.json` holds the config as it holds now, and what was changed when.
import { changeConfig } from "../config/change-config.ts";
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { encodeJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { runKey } from "./keys.ts";
import { type RunChange, type RunRecord, readVersionedRun } from "./run-record.ts";
import { readState } from "./run-state.ts";

export interface ChangeInput {
  readonly run: string;
  /** "path.to.key=value" with a YAML value. */
  readonly set: readonly string[];
  readonly at: Date;
}

interface PlannedChange {
  readonly record: RunRecord;
  readonly etag: string;
  /** Empty where every setting has its value already. */
  readonly changes: readonly RunChange[];
}

/**
 * What the run's record would be. Writes nothing.
 *
 * @throws InputError for a setting that may not change, and for fewer iterations than were played
 */
export async function planChange(store: ObjectStore, { run, set, at }: ChangeInput): Promise<PlannedChange> {
  const { record, etag } = await readVersionedRun(store, run);
  const { config, changes: settings } = changeConfig(run, record.config, set);
  const { rolloutsClosed: iteration } = (await readState(store, run)).state;
  if (settings.length > 0 && config.training.iterations < iteration) {
    throw new InputError({
      what: "the run has played more iterations already",
      where: "training.iterations",
      expected: `at least ${iteration}, got ${config.training.iterations}`,
      fix: `t1 run stop ${run} ends it where it is`,
    });
  }
  const changes = settings.map(
    setting => ({ at: at.toISOString(), iteration, ...setting }) as RunChange, // all that may change are such values
  );
  return { record: { ...record, config, changes: [...(record.changes ?? []), ...changes] }, etag, changes };
}

/** @returns what changed @throws InputError as `planChange`, and when somebody else changed the run at once */
export async function changeRun(store: ObjectStore, input: ChangeInput): Promise<readonly RunChange[]> {
  const { record, etag, changes } = await planChange(store, input);
  if (changes.length === 0) return changes;
  const key = runKey(input.run);
  const { written } = await store.put(key, encodeJson(record), { ifMatch: etag });
  if (written) return changes;
  throw new InputError({
    what: "somebody else changed the run at once",
    where: key,
    expected: "expected it as it was read",
    fix: "the same command again",
  });
}

/** The config of another start from where the run stands: what a run began with may be gone by now. */
export function asStartedFrom(run: string, config: RunConfig): RunConfig {
  const policy = { run };
  const { model: _, ...rest } = config;
  if (rest.algorithm !== "ppo") return { ...rest, policy };
  const { from: __, ...critic } = rest.training.critic;
  return { ...rest, policy, training: { ...rest.training, critic } };
}
