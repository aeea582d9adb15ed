// Before a run: makes it from a checkpoint where asked to, and refuses what this deployment cannot run.
import { GetServiceQuotaCommand, ServiceQuotasClient } from "@aws-sdk/client-service-quotas";
import { z } from "zod";
import { InputError } from "../../src/failure/errors.ts";
import { fixCloudSettings } from "../../src/pipeline/cloud-settings.ts";
import { forkRun } from "../../src/pipeline/fork-run.ts";
import { readRun } from "../../src/pipeline/run-record.ts";
import { assertRunName } from "../../src/pipeline/start-run.ts";
import { storedPoolName } from "../../src/pipeline/stored-pool.ts";
import { capacity } from "../../src/planning/capacity.ts";
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

export const handler = stageHandler(PreflightEvent, async ({ run, from, overlap }, { store }) => {
  assertRunName(run);
  if (from !== null) await forkRun({ run, from, createdAt: new Date() }, { store });
  const { config, pool } = await readRun(store, run);
  await fixCloudSettings({ run, overlap }, { store });
  const answer = { kind: config.kind, iterations: config.training.iterations };
  if (sandboxKind() !== "fargate") return answer;
  for (const folder of [pool.folder, ...(config.evaluation === undefined ? [] : [config.evaluation.pool])]) {
    if (storedPoolName(folder) !== undefined) continue;
    throw new InputError({
      what: "the run's tasks are not in the store",
      where: folder,
      expected: "a pool of the store, store:NAME",
      fix: "store the pool, and start the run with its name",
    });
  }
  if (config.rollout.stragglers === "cut") {
    throw new InputError({
      what: "this deployment cannot cut stragglers",
      where: "rollout.stragglers",
      expected: "wait: drivers do not know of one another's episodes",
    });
  }
  const { problems, warnings, launchSeconds, possible } = capacity(await question());
  for (const message of warnings) logWarning(message);
  if (problems.length > 0) {
    throw new InputError({
      what: "the account's quotas are too small for this deployment",
      expected: problems.join("; "),
      fix: "raise the quota, or lower sandboxes.atOnce (docs/operate.md, Quotas)",
    });
  }
  return { ...answer, launchSeconds, possibleSandboxes: possible };
});

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
