// `t1 run … --stack NAME`: runs of a deployment. What AWS is asked stands in src/deployment; here is what a person sees.
import { setTimeout as sleep } from "node:timers/promises";
import { parseRunConfig } from "../config/parse-config.ts";
import { AwsClients } from "../deployment/clients.ts";
import { executionLink, logLink } from "../deployment/console-links.ts";
import { createStoredRun } from "../deployment/create-run.ts";
import { type Deployment, findDeployment } from "../deployment/deployment.ts";
import {
  describeExecution,
  latestExecution,
  listRunExecutions,
  type RunExecution,
} from "../deployment/executions.ts";
import { explainFailure } from "../deployment/explain-failure.ts";
import { readProgress } from "../deployment/progress.ts";
import {
  abortExecution,
  executionsAtRest,
  type RunSettings,
  startNextSession,
} from "../deployment/run-machine.ts";
import { Failure } from "../failure/errors.ts";
import { readMetrics } from "../learning/metrics.ts";
import { asStartedFrom, changeRun, planChange } from "../run/change-run.ts";
import { assertDeployable } from "../run/deployable.ts";
import { iterationPrefix, metricsKey } from "../run/keys.ts";
import { describeSoftware, readRun } from "../run/run-record.ts";
import { advanceState, type Move, readState } from "../run/run-state.ts";
import { readRunInputs } from "../run/start-run.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import { softwareOf } from "../training/engines.ts";
import { print } from "./output.ts";
import { Progress } from "./progress.ts";
import { readConfig } from "./read-config.ts";
import { listRuns, RUN_COLUMNS, readableRuns, runRow } from "./run-list.ts";
import { describeChange, iterationLine } from "./run-progress.ts";
import { describeFailure, describeProgress } from "./stack-progress.ts";
import { formatTable } from "./table.ts";

export interface StackOptions extends RunSettings {
  readonly stack: string;
  readonly json?: boolean;
}

interface Opened {
  readonly deployment: Deployment;
  readonly store: ObjectStore;
  readonly clients: AwsClients;
}

export async function openStack(name: string): Promise<Opened> {
  const clients = new AwsClients();
  const deployment = await findDeployment(name, clients);
  return { deployment, store: await openStore(deployment.storeUrl), clients };
}

export async function startOnStack(
  configFile: string,
  options: StackOptions & { readonly name: string; readonly set?: readonly string[] },
): Promise<void> {
  const config = parseRunConfig(readConfig(configFile), configFile, options.set);
  const opened = await openStack(options.stack);
  const progress = new Progress({ stream: process.stderr });
  await createStoredRun(
    {
      ...{ run: options.name, config, configFile },
      software: describeSoftware(await softwareOf(config.engine)),
      createdAt: new Date(),
    },
    {
      store: opened.store,
      onPool: (folder, done, total) => {
        if (done === 1) progress.begin(`storing ${folder}`, total);
        progress.advance(done, total);
      },
    },
  );
  progress.clear();
  await startSession(opened, options.name, options, "started");
}

export async function resumeOnStack(
  run: string,
  options: StackOptions & { readonly set?: readonly string[] },
): Promise<void> {
  const opened = await openStack(options.stack);
  const { store, deployment, clients } = opened;
  const input = { run, set: options.set ?? [], at: new Date() };
  const { record, changes } = await planChange(store, input);
  if (changes.length > 0) {
    await executionsAtRest(deployment, run, clients);
    assertDeployable(record.config);
    await readRunInputs({ config: asStartedFrom(run, record.config), configFile: "/run.yaml" }, { store });
    for (const change of await changeRun(store, input)) process.stderr.write(`${describeChange(change)}\n`);
  }
  await moveState(opened.store, run, { kind: "resume" });
  await startSession(opened, run, options, "resumed");
}

async function startSession(
  { deployment, clients }: Opened,
  run: string,
  options: StackOptions,
  word: string,
): Promise<void> {
  const { arn, name } = await startNextSession(deployment, run, options, clients);
  const console = executionLink(arn);
  print(
    options,
    { run, stack: options.stack, execution: name, arn, console },
    `${run} is ${word}: execution ${name}\n  ${console}\n  t1 run watch ${run} --stack ${options.stack}\n`,
  );
}

export async function stopOnStack(
  run: string,
  options: StackOptions & { readonly now?: boolean },
): Promise<void> {
  const { deployment, store, clients } = await openStack(options.stack);
  await moveState(store, run, { kind: "stop", reason: "stopped by t1 run stop" });
  const running = (await listRunExecutions(deployment, clients, run)).filter(
    ({ status }) => status === "RUNNING",
  );
  if (options.now) for (const { arn } of running) await abortExecution(arn, clients);
  const when =
    running.length === 0
      ? "was not at work"
      : options.now
        ? "is aborted"
        : "stops when the episodes or the training at work are done";
  print(
    options,
    { run, stopped: true, executions: running.map(({ name }) => name), aborted: options.now === true },
    `${run} ${when}; t1 run resume ${run} --stack ${options.stack} goes on\n`,
  );
}

/** The machine moves the state too: a lost race is tried again. */
async function moveState(store: ObjectStore, run: string, move: Move): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await advanceState(store, run, await readState(store, run), move);
      return;
    } catch (error) {
      if (!(error instanceof Failure) || error.name !== "OwnerLost" || tries >= 5) throw error;
    }
  }
}

export async function listOnStack(options: StackOptions): Promise<void> {
  const { deployment, store, clients } = await openStack(options.stack);
  const [runs, executions] = await Promise.all([listRuns(store), listRunExecutions(deployment, clients)]);
  readableRuns(runs);
  const rows = runs.map(run => ({ ...run, execution: executions.find(one => one.run === run.run) }));
  print(
    options,
    rows,
    rows.length === 0
      ? `no run in ${store.url}\n`
      : formatTable(
          [...RUN_COLUMNS, "execution", "status"],
          rows.map(({ execution, ...run }) => [
            ...runRow(run),
            ...[execution?.name ?? "–", execution?.status ?? "–"],
          ]),
        ),
  );
}

/** Prints iterations as they end, until the run's execution has. @throws Failure RunStopped where it did not succeed */
export async function watchOnStack(
  run: string,
  options: StackOptions & { readonly every: number },
): Promise<void> {
  const opened = await openStack(options.stack);
  const { config } = await readRun(opened.store, run);
  const show = iterationPrinter(opened.store, run, config.training.iterations, options.json === true);
  let announced: string | undefined;
  let doing = "";
  for (;;) {
    const execution = await latestExecution(opened.deployment, opened.clients, run);
    if (execution.name !== announced) {
      process.stderr.write(`execution ${execution.name}\n  ${executionLink(execution.arn)}\n`);
      announced = execution.name;
    }
    await show();
    if (execution.status !== "RUNNING") {
      if (await handedOver(execution, opened)) continue;
      await show();
      await reportEnd(execution, options, opened);
      return;
    }
    const now = describeProgress(await readProgress(opened.deployment, execution, opened.clients));
    if (now !== doing) process.stderr.write(`${now}\n`);
    doing = now;
    await sleep(options.every * 1000);
  }
}

/** A history ends at 25,000 events: the machine goes on in a fresh execution, which may take a moment to be listed. */
async function handedOver(execution: RunExecution, { clients }: Opened): Promise<boolean> {
  if (execution.status !== "SUCCEEDED") return false;
  const { output = "" } = await describeExecution(execution.arn, clients);
  if (!/"outcome":\s*"handed-over"/.test(output)) return false;
  await sleep(1000);
  return true;
}

function iterationPrinter(store: ObjectStore, run: string, iterations: number, json: boolean) {
  let next = 0;
  return async (): Promise<void> => {
    for (; next < iterations; next++) {
      const phase = iterationPrefix(run, next);
      if ((await store.head(metricsKey(phase))) === undefined) return;
      const metrics = await readMetrics(store, phase);
      process.stdout.write(iterationLine({ iteration: next, iterations, json }, metrics));
    }
  };
}

async function reportEnd(execution: RunExecution, options: StackOptions, opened: Opened): Promise<void> {
  const { deployment, clients, store } = opened;
  const { run, name } = execution;
  if (execution.status === "SUCCEEDED") {
    const { output = "{}" } = await describeExecution(execution.arn, clients);
    const { outcome = "done", spentUsd } = JSON.parse(output) as { outcome?: string; spentUsd?: number };
    const spent = spentUsd === undefined ? "" : `; it has cost about ${spentUsd.toFixed(2)} $`;
    process.stderr.write(`${run} is ${outcome}${spent}\n`);
    return;
  }
  const explanation = await explainFailure(deployment, execution, clients);
  process.stderr.write(await describeFailure(run, explanation, store));
  if (explanation.log !== undefined) {
    const { group, stream } = explanation.log;
    process.stderr.write(`  ${logLink(deployment.region, group, stream)}\n`);
  }
  throw new Failure(
    "RunStopped",
    `${name} ended as ${execution.status}; when the cause is removed, t1 run resume ${run} --stack ${options.stack} goes on`,
    { retryable: true },
  );
}
