// Before a run: makes it from a checkpoint where asked to, and refuses what this deployment cannot run.
import { z } from "zod";
import type { RunConfig } from "../../src/config/run-config.ts";
import { InputError } from "../../src/failure/errors.ts";
import { capacity } from "../../src/planning/capacity.ts";
import type { PreflightReport } from "../../src/planning/preflight-report.ts";
import { fixCloudSettings } from "../../src/run/cloud-settings.ts";
import { assertDeployable, assertRunName, assertStoredPool } from "../../src/run/deployable.ts";
import { forkRun } from "../../src/run/fork-run.ts";
import { readRun } from "../../src/run/run-record.ts";
import { readNeeds, storedPoolName } from "../../src/run/stored-pool.ts";
import { problemsOfNeeds } from "../../src/run/task-needs.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { logWarning } from "../log.ts";
import { FlagText, Iteration, NumberText, Run } from "../schemas.ts";
import { readEnvironment, sandboxKind, stageHandler } from "../stage-handler.ts";
import { fargateQuotas, missingImages, missingRights } from "./account.ts";

const Checkpoint = z.strictObject({ run: Run, version: Iteration.optional() });
export const PreflightEvent = z.strictObject({
  run: Run,
  from: Checkpoint.extend({ critic: Checkpoint.optional() }).nullable(),
  overlap: z.boolean(),
  execution: z.string(),
});

/** Asked by a person: about a run that was not started yet, or about the deployment alone. Changes nothing. */
const QuestionEvent = z.strictObject({ ask: z.literal(true), run: Run.optional() });

export const handler = stageHandler(
  z.union([PreflightEvent, QuestionEvent]),
  async (event, { store }): Promise<PreflightReport | PreflightAnswer> => {
    if ("ask" in event) return report(event.run, store);
    const { run, from, overlap } = event;
    assertRunName(run);
    if (from !== null) await forkRun({ run, from, createdAt: new Date() }, { store });
    const { config } = await readRun(store, run);
    await fixCloudSettings({ run, overlap }, { store });
    const { problems, warnings, ...room } = await report(run, store);
    for (const message of warnings) logWarning(message);
    if (problems.length > 0) {
      throw new InputError({
        what: "the run cannot work in this deployment",
        where: run,
        expected: problems.join("; "),
        fix: "docs/operate.md, Quotas",
      });
    }
    return { kind: config.kind, iterations: config.training.iterations, ...room };
  },
);

interface PreflightAnswer {
  readonly kind: RunConfig["kind"];
  readonly iterations: number;
}

/** @param run one that is in the store; without it the deployment alone is looked at */
async function report(run: string | undefined, store: ObjectStore): Promise<PreflightReport> {
  const isFargate = sandboxKind() === "fargate";
  const problems: string[] = [];
  let pools: readonly string[] = [];
  if (run !== undefined) {
    const { config, pool } = await readRun(store, run);
    pools = [pool.folder, ...(config.evaluation === undefined ? [] : [config.evaluation.pool])];
    const checks = [
      () => assertRunName(run),
      ...(isFargate
        ? [() => assertDeployable(config), ...pools.map(one => () => assertStoredPool(one))]
        : []),
    ];
    problems.push(...checks.flatMap(complaint));
  }
  if (!isFargate) return { problems, warnings: [] };
  const env = readDeployment();
  problems.push(...(await needsProblems(pools, store, env.T1_EGRESS)));
  const [images, rights, quotaVcpus] = await Promise.all([
    missingImages(env.T1_OWN_IMAGES.split(","), env.T1_IMAGE_TAG),
    missingRights({
      role: env.T1_DRIVER_ROLE,
      task: env.T1_ANY_TASK,
      definition: env.T1_ANY_DEFINITION,
      cluster: env.T1_CLUSTER_ARN,
      executionRole: env.T1_SANDBOX_EXECUTION_ROLE,
      object: env.T1_ANY_OBJECT,
    }),
    fargateQuotas(),
  ]);
  const answer = capacity({
    sandboxesAtOnce: env.T1_SANDBOXES_AT_ONCE,
    sandboxVcpus: env.T1_SANDBOX_CPU / 1024,
    episodesPerDriver: env.T1_EPISODES_PER_DRIVER,
    driverVcpus: env.T1_DRIVER_CPU / 1024,
    quotaVcpus,
    spot: env.T1_SPOT,
  });
  return {
    problems: [...problems, ...images, ...rights, ...answer.problems],
    warnings: answer.warnings,
    launchSeconds: answer.launchSeconds,
    possibleSandboxes: answer.possible,
  };
}

async function needsProblems(
  pools: readonly string[],
  store: ObjectStore,
  hasProxy: boolean,
): Promise<readonly string[]> {
  const names = pools.flatMap(pool => storedPoolName(pool) ?? []);
  const needs = await Promise.all([...new Set(names)].map(name => readNeeds(name, { store })));
  return needs.flatMap(tasks => problemsOfNeeds(tasks, { hasProxy }));
}

function complaint(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof InputError) return [error.message];
    throw error;
  }
}

/** What the deployment says of itself (infra/stacks/pipeline.ts). */
function readDeployment() {
  return readEnvironment({
    T1_SANDBOXES_AT_ONCE: NumberText,
    T1_SANDBOX_CPU: NumberText,
    T1_EPISODES_PER_DRIVER: NumberText,
    T1_DRIVER_CPU: NumberText,
    T1_SPOT: FlagText,
    T1_EGRESS: FlagText,
    /** Repositories with commas. */
    T1_OWN_IMAGES: z.string().min(1),
    T1_IMAGE_TAG: z.string().min(1),
    T1_DRIVER_ROLE: z.string().min(1),
    T1_SANDBOX_EXECUTION_ROLE: z.string().min(1),
    T1_CLUSTER_ARN: z.string().min(1),
    T1_ANY_TASK: z.string().min(1),
    T1_ANY_DEFINITION: z.string().min(1),
    T1_ANY_OBJECT: z.string().min(1),
  });
}
