// What stands on this machine for Lambda, ECS and Batch: the deployment's functions, and a driver and a trainer that get
// the environment of their containers.
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { Assembly } from "../asl/assembly.ts";
import type { Executors } from "../asl/executor.ts";
import { batchExecutor } from "../asl/executors/batch.ts";
import { ecsExecutor } from "../asl/executors/ecs.ts";
import { lambdaExecutor } from "../asl/executors/lambda.ts";
import type { Program } from "../asl/executors/program.ts";
import type { PhasePrefix } from "../run/keys.ts";
import { openFunctions } from "./functions.ts";
import type { SharedGroups } from "./shared-groups.ts";

export interface ExecutorsOptions {
  readonly assembly: Assembly;
  readonly shared: Pick<SharedGroups, "prepared">;
  readonly driver: Program;
  readonly trainer: Program;
  /** What programs are told on top of what the deployment tells them. */
  readonly environment: Readonly<Record<string, string>>;
  /** Episodes of a group. */
  readonly groupSize: number;
}

/** Below the time limit of the function: images that take longer are asked for again, as the machine does it. */
const PREPARE_PATIENCE_MS = 600_000;

const PhaseEvent = z.object({ phase: z.string() });

export function executorsHere(options: ExecutorsOptions): Executors {
  const { assembly, driver, trainer, environment } = options;
  const containers = (family: string) =>
    assembly.tasks[family].map(container => ({
      ...container,
      image: container.name,
      program: container.name === "driver" ? driver : undefined,
      environment: { ...ofThisMachine(container.environment), ...environment },
    }));
  const tasks = Object.keys(assembly.tasks).map(
    family => [family, { containers: containers(family) }] as const,
  );
  const jobs = Object.entries(assembly.jobs).map(
    ([name, job]) =>
      [name, { ...job, program: trainer, environment: { ...job.environment, ...environment } }] as const,
  );
  return {
    "lambda:invoke": lambdaExecutor(functionsHere(options)),
    "ecs:runTask": ecsExecutor(Object.fromEntries(tasks)),
    "batch:submitJob": batchExecutor({
      definitions: Object.fromEntries(jobs),
      queues: Object.fromEntries(assembly.queues.map(name => [name, {}])),
    }),
  };
}

/** As deployed, but for the images of tasks, which this machine makes by itself. */
function functionsHere({ assembly, shared, environment, groupSize }: ExecutorsOptions) {
  return openFunctions(
    assembly,
    { ...environment, T1_EPISODES_PER_DRIVER: String(groupSize) },
    {
      prepare: async event => {
        const prepared = shared.prepared(PhaseEvent.parse(event).phase as PhasePrefix).then(() => true);
        const ready = await Promise.race([prepared, sleep(PREPARE_PATIENCE_MS, false, { ref: false })]);
        return { ready, waiting: ready ? 0 : 1 };
      },
    },
  );
}

/** Drivers of this machine sample in their own process: the deployment's server is not there. */
function ofThisMachine({ T1_SAMPLER_URL: _, ...environment }: Readonly<Record<string, string>>) {
  return environment;
}
