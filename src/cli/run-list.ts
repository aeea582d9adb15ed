// The runs of a store, and how far each is.
import { readRun } from "../pipeline/run-record.ts";
import { runKey } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { liveOwner } from "../store/owner-lease.ts";
import { readState } from "../store/run-state.ts";

export async function listRuns(store: ObjectStore) {
  const names = await Array.fromAsync(store.folders("runs/"));
  const started = await Promise.all(names.map(run => store.head(runKey(run))));
  return Promise.all(
    names
      .filter((_, index) => started[index] !== undefined)
      .map(async run => {
        const { config, createdAt } = await readRun(store, run);
        const { state } = await readState(store, run);
        const { iterations } = config.training;
        const done = state.policyPublished;
        return {
          run,
          kind: config.kind,
          createdAt,
          done,
          iterations,
          state: (await liveOwner(store, run, Date.now))
            ? "running"
            : done >= iterations
              ? "done"
              : state.stopped
                ? "stopped"
                : "unfinished",
        };
      }),
  );
}
