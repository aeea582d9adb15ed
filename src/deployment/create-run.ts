// Makes a run in a deployment's store from a config and files of this machine: its pools of tasks, its model, its record.
import { dirname, resolve } from "node:path";
import type { RunConfig } from "../config/run-config.ts";
import { assertDeployable, assertRunName } from "../run/deployable.ts";
import type { RunRecord } from "../run/run-record.ts";
import { type StartInput, startRun } from "../run/start-run.ts";
import { storedPoolName, storePool } from "../run/stored-pool.ts";
import type { ObjectStore } from "../store/object-store.ts";

export interface CreateRunServices {
  readonly store: ObjectStore;
  readonly onPool?: (folder: string, done: number, total: number) => void;
}

/** Safe to run again after it was interrupted. @throws InputError as `startRun` and `storePool` do */
export async function createStoredRun(
  { config, ...input }: StartInput,
  { store, onPool }: CreateRunServices,
): Promise<RunRecord> {
  assertRunName(input.run);
  assertDeployable(config);
  const folder = dirname(resolve(input.configFile));
  const stored = async (pool: string): Promise<string> => {
    if (storedPoolName(pool) !== undefined) return pool;
    const onTask = (done: number, total: number): void => onPool?.(pool, done, total);
    return (await storePool({ folder: resolve(folder, pool), onTask }, { store })).pool;
  };
  const tasks = { ...config.tasks, pool: await stored(config.tasks.pool) };
  const evaluation = config.evaluation && {
    evaluation: { ...config.evaluation, pool: await stored(config.evaluation.pool) },
  };
  return startRun({ ...input, config: { ...config, tasks, ...evaluation } as RunConfig }, { store });
}
