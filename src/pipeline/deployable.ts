// What a deployment cannot run, whatever its sizes: said before anything is started, on the command line and by the
// machine's first stage.
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { storedPoolName } from "./stored-pool.ts";

/** @throws InputError for what drivers on other machines cannot do */
export function assertDeployable({ rollout }: Pick<RunConfig, "rollout">): void {
  if (rollout.stragglers !== "cut") return;
  throw new InputError({
    what: "a deployment cannot cut stragglers",
    where: "rollout.stragglers",
    expected: "wait: drivers do not know of one another's episodes",
  });
}

/** @throws InputError for a pool that only the machine which made the run can read */
export function assertStoredPool(folder: string): void {
  if (storedPoolName(folder) !== undefined) return;
  throw new InputError({
    what: "the run's tasks are not in the store",
    where: folder,
    expected: "a pool of the store, store:NAME",
    fix: "start the run with t1 run start --stack, which stores them",
  });
}
