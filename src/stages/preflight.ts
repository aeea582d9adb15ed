// Refuses what a deployment cannot run before anything is started, and makes a run from a checkpoint where asked to.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { capacity } from "../planning/capacity.ts";
import { PreflightReport } from "../planning/preflight-report.ts";
import { fixCloudSettings } from "../run/cloud-settings.ts";
import { assertDeployable, assertRunName, assertStoredPool } from "../run/deployable.ts";
import { forkRun } from "../run/fork-run.ts";
import { readRun } from "../run/run-record.ts";
import { readNeeds, storedPoolName } from "../run/stored-pool.ts";
import { problemsOfNeeds } from "../run/task-needs.ts";
import { CountText, environment, FlagText, ListText, NumberText, Text } from "../settings/environment.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { Iteration, Run, SandboxesText, type StageServices, stage } from "./stage.ts";

const Checkpoint = z.strictObject({ run: Run, version: Iteration.optional() });

const SETTINGS = environment("the preflight stage", {
  sandboxes: ["T1_SANDBOXES", SandboxesText],
  sandboxesAtOnce: ["T1_SANDBOXES_AT_ONCE", CountText],
  /** In CPU units, of which 1024 are one vCPU. */
  sandboxCpu: ["T1_SANDBOX_CPU", NumberText],
  episodesPerDriver: ["T1_EPISODES_PER_DRIVER", CountText],
  driverCpu: ["T1_DRIVER_CPU", NumberText],
  spot: ["T1_SPOT", FlagText],
  /** Whether sandboxes can reach anything, through a proxy. */
  egress: ["T1_EGRESS", FlagText],
  /** Repositories of our own images. */
  ownImages: ["T1_OWN_IMAGES", ListText],
  imageTag: ["T1_IMAGE_TAG", Text],
  driverRole: ["T1_DRIVER_ROLE", Text],
  sandboxExecutionRole: ["T1_SANDBOX_EXECUTION_ROLE", Text],
  clusterArn: ["T1_CLUSTER_ARN", Text],
  /** ARNs that tasks of the cluster, definitions of sandboxes and objects of a run have. */
  anyTask: ["T1_ANY_TASK", Text],
  anyDefinition: ["T1_ANY_DEFINITION", Text],
  anyObject: ["T1_ANY_OBJECT", Text],
});
type Deployment = ReturnType<typeof SETTINGS.fromEnvironment>;

/** Answers of the account that a deployment lies in. Problems are a sentence each. */
export interface Account {
  /** In vCPUs. */
  readonly quotas: () => Promise<{ readonly onDemand: number; readonly spot: number }>;
  readonly missingImages: (repositories: readonly string[], tag: string) => Promise<readonly string[]>;
  /** Actions that a driver needs and its role may not do. */
  readonly missingRights: (
    deployment: Pick<
      Deployment,
      "driverRole" | "sandboxExecutionRole" | "clusterArn" | "anyTask" | "anyDefinition" | "anyObject"
    >,
  ) => Promise<readonly string[]>;
}

/** A laptop and an emulator have no account to ask. */
export type PreflightServices = StageServices & { readonly account?: Account };

export const preflight = stage({
  input: z.union([
    z.strictObject({
      run: Run,
      from: Checkpoint.extend({ critic: Checkpoint.optional() }).nullable(),
      overlap: z.boolean(),
      execution: z.string(),
    }),
    /** A person's question about a run that was not started yet, or about the deployment alone. Changes nothing. */
    z.strictObject({ ask: z.literal(true), run: Run.optional() }),
  ]),
  output: z.union([
    PreflightReport,
    PreflightReport.omit({ problems: true, warnings: true }).extend({
      algorithm: z.string(),
      iterations: z.int(),
    }),
  ]),
  settings: SETTINGS,
  run: async (event, deployment: Deployment | undefined, services: PreflightServices) => {
    const { store, onWarning } = services;
    if ("ask" in event) return report(event.run, deployment, services);
    const { run, from, overlap } = event;
    assertRunName(run);
    if (from !== null) await forkRun({ run, from, createdAt: new Date() }, { store });
    const { config } = await readRun(store, run);
    await fixCloudSettings({ run, overlap }, { store });
    const { problems, warnings, ...room } = await report(run, deployment, services);
    for (const message of warnings) onWarning(message);
    if (problems.length > 0) {
      throw new InputError({
        what: "the run cannot work in this deployment",
        where: run,
        expected: problems.join("; "),
        fix: "docs/operate.md, Quotas",
      });
    }
    return { algorithm: config.algorithm, iterations: config.training.iterations, ...room };
  },
});

/** @param run one that is in the store; without it only the deployment is looked at */
async function report(
  run: string | undefined,
  deployment: Deployment | undefined,
  { store, account }: PreflightServices,
): Promise<PreflightReport> {
  const problems: string[] = [];
  let pools: readonly string[] = [];
  if (run !== undefined) {
    const { config, pool } = await readRun(store, run);
    pools = [pool.folder, ...(config.evaluation === undefined ? [] : [config.evaluation.pool])];
    const checks = [
      () => assertRunName(run),
      ...(deployment === undefined || account === undefined
        ? []
        : [() => assertDeployable(config), ...pools.map(one => () => assertStoredPool(one))]),
    ];
    problems.push(...checks.flatMap(complaint));
  }
  if (deployment === undefined || account === undefined) return { problems, warnings: [] };
  problems.push(...(await needsProblems(pools, store, deployment.egress)));
  const [images, rights, quotaVcpus] = await Promise.all([
    account.missingImages(deployment.ownImages, deployment.imageTag),
    account.missingRights(deployment),
    account.quotas(),
  ]);
  const answer = capacity({
    sandboxesAtOnce: deployment.sandboxesAtOnce,
    sandboxVcpus: deployment.sandboxCpu / 1024,
    episodesPerDriver: deployment.episodesPerDriver,
    driverVcpus: deployment.driverCpu / 1024,
    quotaVcpus,
    spot: deployment.spot,
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
