// Makes a trained version the run's newest policy, and deletes what the run's `keep` setting does not want to stay.

import { InvariantError } from "../failure/errors.ts";
import { readRun } from "../run/run-record.ts";
import { advanceState, readState } from "../run/run-state.ts";
import { hasPolicy, pruneVersions, type Version } from "../run/version.ts";
import type { ObjectStore } from "../store/object-store.ts";

export async function publish(
  { run, version }: Version,
  { store }: { readonly store: ObjectStore },
): Promise<void> {
  if (!(await hasPolicy(store, { run, version })))
    throw new InvariantError("a policy that is not whole would be published", { run, version });
  await advanceState(store, run, await readState(store, run), { kind: "publish-policy", version });
  await pruneVersions(store, { run, version }, (await readRun(store, run)).config.keep);
}
