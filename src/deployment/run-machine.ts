// Starting, stopping and resuming a run's machine. The store says what is to be done (docs/architecture.md): an execution
// only works on it, so a run is resumed by a new execution and nothing is redriven.
import {
  DescribeExecutionCommand,
  ExecutionAlreadyExists,
  StartExecutionCommand,
  StopExecutionCommand,
} from "@aws-sdk/client-sfn";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { asked } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";
import type { Deployment } from "./deployment.ts";
import { listRunExecutions, type RunExecution, runExecutionName } from "./executions.ts";

/** What an execution may be told besides its run. Left out, a resumed run keeps what it had. */
export interface RunSettings {
  readonly overlap?: boolean;
  readonly budgetUsd?: number;
}

const Input = z.looseObject({
  overlap: z.boolean().optional(),
  budgetUsd: z.number().nullish(),
});

/**
 * Starts the next session of a run. Asked twice at once it starts one execution: both take the same name, and AWS gives
 * a name once.
 *
 * @returns the execution, also where it was there already @throws InputError while an execution of the run is at work
 */
export async function startNextSession(
  deployment: Deployment,
  run: string,
  settings: RunSettings,
  clients: AwsClients,
): Promise<{ readonly arn: string; readonly name: string; readonly session: string }> {
  const before = await executionsAtRest(deployment, run, clients);
  const session = `s${1 + Math.max(0, ...before.map(execution => sessionNumber(execution)))}`;
  const last = before[0];
  const kept = last === undefined ? {} : await readSettings(last, clients);
  const name = runExecutionName(run, session, 0);
  const input = JSON.stringify({ run, session, ...kept, ...defined(settings) });
  const command = new StartExecutionCommand({ stateMachineArn: deployment.machines.run, name, input });
  const arn = `${deployment.machines.run.replace(":stateMachine:", ":execution:")}:${name}`;
  try {
    await asked("states:StartExecution", clients.states.send(command));
  } catch (error) {
    // Somebody else was faster with the same name.
    if (!(error instanceof ExecutionAlreadyExists)) throw error;
  }
  return { arn, name, session };
}

/** @returns the executions of a run, the newest first @throws InputError while one is at work */
export async function executionsAtRest(
  deployment: Deployment,
  run: string,
  clients: AwsClients,
): Promise<readonly RunExecution[]> {
  const executions = await listRunExecutions(deployment, clients, run);
  const atWork = executions.find(({ status }) => status === "RUNNING" || status === "PENDING_REDRIVE");
  if (atWork !== undefined) throw alreadyAtWork(deployment, atWork);
  return executions;
}

/** Ends an execution at once: Step Functions stops the drivers and jobs under way, the sweeper what they leave. */
export async function abortExecution(arn: string, { states }: AwsClients): Promise<void> {
  const command = new StopExecutionCommand({
    executionArn: arn,
    error: "RunStopped",
    cause: "aborted by t1 run stop --now",
  });
  await asked("states:StopExecution", states.send(command));
}

async function readSettings({ arn }: RunExecution, { states }: AwsClients): Promise<RunSettings> {
  const command = new DescribeExecutionCommand({ executionArn: arn });
  const { input = "{}" } = await asked("states:DescribeExecution", states.send(command));
  const { overlap, budgetUsd } = Input.parse(JSON.parse(input));
  return defined({ overlap, budgetUsd: budgetUsd ?? undefined });
}

function defined({ overlap, budgetUsd }: RunSettings): RunSettings {
  return { ...(overlap !== undefined && { overlap }), ...(budgetUsd !== undefined && { budgetUsd }) };
}

/** Sessions that a person named otherwise are in nobody's way. */
function sessionNumber({ session }: RunExecution): number {
  return Number(/^s(\d+)$/.exec(session)?.[1] ?? 0);
}

function alreadyAtWork({ name }: Deployment, { run, name: execution }: RunExecution): InputError {
  return new InputError({
    what: "the run is at work already",
    where: execution,
    expected: "expected no running execution of it",
    fix: `t1 run watch ${run} --stack ${name} follows it, t1 run stop ${run} --stack ${name} ends it`,
  });
}
