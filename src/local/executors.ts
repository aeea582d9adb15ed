// What stands on this machine for Lambda, ECS and Batch: the stages, and a driver and a trainer that get the environment
// of their containers.
import type { Assembly } from "../asl/assembly.ts";
import type { Executors } from "../asl/executor.ts";
import { batchExecutor } from "../asl/executors/batch.ts";
import { ecsExecutor } from "../asl/executors/ecs.ts";
import { lambdaExecutor } from "../asl/executors/lambda.ts";
import type { Program } from "../asl/executors/program.ts";
import { type FunctionsOptions, functionsHere, withTimeLimits } from "./functions.ts";

export interface ExecutorsOptions extends FunctionsOptions {
  readonly assembly: Assembly;
  readonly driver: Program;
  readonly trainer: Program;
  /** Settings of the programs that differ from the deployment's. */
  readonly environment: Readonly<Record<string, string>>;
  /** A test of failures puts something between the machines and the stages. */
  readonly wrapFunctions?: (functions: ReturnType<typeof functionsHere>) => ReturnType<typeof functionsHere>;
}

export function executorsHere(options: ExecutorsOptions): Executors {
  const { assembly, driver, trainer, environment, wrapFunctions = same => same } = options;
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
    "lambda:invoke": lambdaExecutor(
      withTimeLimits(wrapFunctions(functionsHere(options)), assembly.functions),
    ),
    "ecs:runTask": ecsExecutor(Object.fromEntries(tasks)),
    "batch:submitJob": batchExecutor({
      definitions: Object.fromEntries(jobs),
      queues: Object.fromEntries(assembly.queues.map(name => [name, {}])),
    }),
  };
}

/** Drivers of this machine sample in their own process: the deployment's served sampler is not there. */
function ofThisMachine({ T1_SAMPLER_URL: _, ...environment }: Readonly<Record<string, string>>) {
  return environment;
}
