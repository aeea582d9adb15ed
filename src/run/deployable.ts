// What a deployment cannot run, whatever its sizes: said before anything is started, on the command line and by the
// machine's first stage.
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { storedPoolName } from "./stored-pool.ts";

/** Names of executions are made of the run's name and at most this much more; they end at 80 characters. */
const NAME_LENGTH = 40;

/** @throws InputError for a name that leaves no room in names of executions */
export function assertRunName(run: string): void {
  if (run.length <= NAME_LENGTH) return;
  throw new InputError({
    what: "the run's name is too long for names of executions",
    where: run,
    expected: `at most ${NAME_LENGTH} characters, got ${run.length}`,
    fix: "choose a shorter one",
  });
}

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
