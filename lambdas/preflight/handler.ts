// Before a run: makes it from a checkpoint where asked to, and refuses what this deployment cannot run.
import { GetServiceQuotaCommand, ServiceQuotasClient } from "@aws-sdk/client-service-quotas";
import { z } from "zod";
import type { RunConfig } from "../../src/config/run-config.ts";
import { InputError } from "../../src/failure/errors.ts";
import { fixCloudSettings } from "../../src/pipeline/cloud-settings.ts";
import { assertDeployable, assertRunName, assertStoredPool } from "../../src/pipeline/deployable.ts";
import { forkRun } from "../../src/pipeline/fork-run.ts";
import { readRun } from "../../src/pipeline/run-record.ts";
import { capacity } from "../../src/planning/capacity.ts";
import type { PreflightReport } from "../../src/planning/preflight-report.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { logWarning } from "../log.ts";
import { FlagText, Iteration, NumberText, Run } from "../schemas.ts";
import { readEnvironment, sandboxKind, stageHandler } from "../stage-handler.ts";

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
  if (run !== undefined) {
    const { config, pool } = await readRun(store, run);
    const pools = [pool.folder, ...(config.evaluation === undefined ? [] : [config.evaluation.pool])];
    const checks = [
      () => assertRunName(run),
      ...(isFargate
        ? [() => assertDeployable(config), ...pools.map(one => () => assertStoredPool(one))]
        : []),
    ];
    problems.push(...checks.flatMap(complaint));
  }
  if (!isFargate) return { problems, warnings: [] };
  const answer = capacity(await question());
  return {
    problems: [...problems, ...answer.problems],
    warnings: answer.warnings,
    launchSeconds: answer.launchSeconds,
    possibleSandboxes: answer.possible,
  };
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

async function question() {
  const env = readEnvironment({
    T1_SANDBOXES_AT_ONCE: NumberText,
    T1_SANDBOX_CPU: NumberText,
    T1_EPISODES_PER_DRIVER: NumberText,
    T1_DRIVER_CPU: NumberText,
    T1_SPOT: FlagText,
  });
  const [onDemand, spot] = await Promise.all([quota("L-3032A538"), quota("L-36FBB829")]);
  return {
    sandboxesAtOnce: env.T1_SANDBOXES_AT_ONCE,
    sandboxVcpus: env.T1_SANDBOX_CPU / 1024,
    episodesPerDriver: env.T1_EPISODES_PER_DRIVER,
    driverVcpus: env.T1_DRIVER_CPU / 1024,
    quotaVcpus: { onDemand, spot },
    spot: env.T1_SPOT,
  };
}

/** Codes of "Fargate On-Demand vCPU resource count" and "Fargate Spot vCPU resource count". */
async function quota(code: string): Promise<number> {
  const client = new ServiceQuotasClient();
  const { Quota } = await client.send(
    new GetServiceQuotaCommand({ ServiceCode: "fargate", QuotaCode: code }),
  );
  return Quota?.Value ?? 0;
}
