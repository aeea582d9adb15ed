// Executions of a run, by their names. A run that is started or resumed by `t1` takes the next session; within a session
// the machine hands over to itself by generations. Names: RUN-SESSION-gN of the run's machine, RUN-SESSION-iN and -eN of
// iterations and evaluations (infra/state-machines/run.ts).
import {
  DescribeExecutionCommand,
  type DescribeExecutionCommandOutput,
  type ExecutionListItem,
  type ExecutionStatus,
  GetExecutionHistoryCommand,
  type HistoryEvent,
  ListExecutionsCommand,
  paginateGetExecutionHistory,
  paginateListExecutions,
} from "@aws-sdk/client-sfn";
import { InputError } from "../failure/errors.ts";
import { asked } from "./aws-errors.ts";
import type { AwsClients } from "./clients.ts";
import type { Deployment } from "./deployment.ts";

export interface RunExecution {
  readonly arn: string;
  readonly name: string;
  readonly run: string;
  readonly session: string;
  readonly generation: number;
  readonly status: ExecutionStatus;
  readonly startedAt: Date;
  readonly stoppedAt?: Date;
}

export function runExecutionName(run: string, session: string, generation: number): string {
  return `${run}-${session}-g${generation}`;
}

/** Sessions have no dash, so that a run "a" never answers for one of "a-b". */
const NAME = /^(.+)-([A-Za-z0-9]+)-g(\d+)$/;

/** Newest first. @param run only of this run */
export async function listRunExecutions(
  { machines }: Deployment,
  { states }: AwsClients,
  run?: string,
): Promise<RunExecution[]> {
  const pages = paginateListExecutions({ client: states, pageSize: 1000 }, { stateMachineArn: machines.run });
  const found: RunExecution[] = [];
  const collect = async (): Promise<void> => {
    for await (const { executions = [] } of pages)
      for (const execution of executions) {
        const parsed = parseExecution(execution);
        if (parsed !== undefined && (run === undefined || parsed.run === run)) found.push(parsed);
      }
  };
  await asked("states:ListExecutions", collect());
  return found.sort((a, b) => b.startedAt.getTime() - a.startedAt.getTime() || b.generation - a.generation);
}

function parseExecution(item: ExecutionListItem): RunExecution | undefined {
  const { executionArn: arn, name = "", status, startDate, stopDate } = item;
  const [, run, session, generation] = NAME.exec(name) ?? [];
  if (arn === undefined || status === undefined || startDate === undefined) return undefined;
  if (run === undefined || session === undefined) return undefined;
  return {
    ...{ arn, name, run, session, generation: Number(generation), status, startedAt: startDate },
    ...(stopDate !== undefined && { stoppedAt: stopDate }),
  };
}

/** @throws InputError when the run never had an execution here (or none in the 90 days that AWS remembers) */
export async function latestExecution(
  deployment: Deployment,
  clients: AwsClients,
  run: string,
): Promise<RunExecution> {
  const [latest] = await listRunExecutions(deployment, clients, run);
  if (latest !== undefined) return latest;
  throw new InputError({
    what: "the run has no execution",
    where: run,
    expected: `expected one of ${deployment.machines.run.split(":").at(-1)} in the last 90 days`,
    fix: `t1 run list --stack ${deployment.name} shows what is there; t1 run resume ${run} --stack ${deployment.name} starts one`,
  });
}

/** Iterations or evaluations of a session in one status, newest first: at most a hundred are looked at. */
export async function listParts(
  machineArn: string,
  { run, session }: Pick<RunExecution, "run" | "session">,
  status: ExecutionStatus,
  { states }: AwsClients,
): Promise<ExecutionListItem[]> {
  const command = new ListExecutionsCommand({
    stateMachineArn: machineArn,
    statusFilter: status,
    maxResults: 100,
  });
  const { executions = [] } = await asked("states:ListExecutions", states.send(command));
  const own = `${run}-${session}`;
  return executions.filter(
    ({ name = "" }) => name.startsWith(own) && /^-[ie]\d{6}(-eval)?$/.test(name.slice(own.length)),
  );
}

export function describeExecution(
  arn: string,
  { states }: AwsClients,
): Promise<DescribeExecutionCommandOutput> {
  return asked("states:DescribeExecution", states.send(new DescribeExecutionCommand({ executionArn: arn })));
}

/** Without inputs and outputs. */
export async function readHistory(arn: string, { states }: AwsClients): Promise<HistoryEvent[]> {
  const pages = paginateGetExecutionHistory(
    { client: states, pageSize: 1000 },
    { executionArn: arn, includeExecutionData: false },
  );
  const collect = async (): Promise<HistoryEvent[]> => {
    const events: HistoryEvent[] = [];
    for await (const page of pages) events.push(...(page.events ?? []));
    return events;
  };
  return asked("states:GetExecutionHistory", collect());
}

/** The newest events, newest first, with their data: where errors and causes are. */
export async function readLastEvents(
  arn: string,
  count: number,
  { states }: AwsClients,
): Promise<HistoryEvent[]> {
  const command = new GetExecutionHistoryCommand({
    executionArn: arn,
    reverseOrder: true,
    maxResults: count,
    includeExecutionData: true,
  });
  const { events = [] } = await asked("states:GetExecutionHistory", states.send(command));
  return events;
}
