// Derives the permissions of a state machine's role from its definition: each integration brings the actions that AWS
// documents for it. CDK's own task classes leave some out (batch:DescribeJobs, batch:TerminateJob, TagResource with tags)
// and give ecs:StopTask on every task of the account.
import { Aws } from "aws-cdk-lib";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { Flowchart, MapState, TaskState } from "../state-machines/asl.ts";

export interface PermissionContext {
  readonly machineName: string;
  readonly clusterName: string;
  /** Roles of the tasks that the machine starts. */
  readonly passRoleArns: readonly string[];
  readonly bucketArn: string;
}

export function permissions(chart: Flowchart, context: PermissionContext): PolicyStatement[] {
  const found = [...walk(chart)].flatMap(state =>
    state.Type === "Map" ? mapPermissions(state, context) : taskPermissions(state, context),
  );
  // Several states need the same permissions; write equal statements once.
  return [
    ...new Map(found.map(statement => [JSON.stringify(statement.toStatementJson()), statement])).values(),
  ];
}

function* walk(chart: Flowchart): Generator<TaskState | MapState> {
  for (const state of Object.values(chart.States)) {
    if (state.Type === "Task") yield state;
    if (state.Type === "Parallel") for (const branch of state.Branches) yield* walk(branch);
    if (state.Type === "Map") {
      yield state;
      yield* walk(state.ItemProcessor);
    }
  }
}

function taskPermissions({ Resource, Arguments }: TaskState, context: PermissionContext): PolicyStatement[] {
  const integration = Resource.split(":::").at(-1) ?? "";
  const argument = (name: string): string => {
    const value = Arguments[name];
    if (typeof value === "string" && !value.startsWith("{%")) return value;
    throw new Error(`${integration}: ${name} must be known when the role is made`);
  };
  switch (integration) {
    case "lambda:invoke":
      return [allow(["lambda:InvokeFunction"], [argument("FunctionName")])];
    case "ecs:runTask.sync":
      return runTaskPermissions(argument("TaskDefinition"), context);
    case "batch:submitJob.sync":
      return batchPermissions(argument("JobQueue"), argument("JobDefinition"));
    case "states:startExecution":
      return [allow(["states:StartExecution"], [argument("StateMachineArn")])];
    case "states:startExecution.sync:2":
      return executionPermissions(argument("StateMachineArn"));
    default:
      throw new Error(`no permissions are known for ${integration}`);
  }
}

function runTaskPermissions(family: string, { clusterName, passRoleArns }: PermissionContext) {
  const cluster = arn("ecs", `cluster/${clusterName}`);
  const tasks = arn("ecs", `task/${clusterName}/*`);
  return [
    allow(["ecs:RunTask"], [arn("ecs", `task-definition/${family}:*`)], {
      ArnEquals: { "ecs:cluster": cluster },
    }),
    allow(["ecs:StopTask", "ecs:DescribeTasks"], [tasks], { ArnEquals: { "ecs:cluster": cluster } }),
    allow(["ecs:TagResource"], [tasks], { StringEquals: { "ecs:CreateAction": "RunTask" } }),
    allow(["iam:PassRole"], passRoleArns, {
      StringEquals: { "iam:PassedToService": "ecs-tasks.amazonaws.com" },
    }),
    managedRule("StepFunctionsGetEventsForECSTaskRule"),
  ];
}

function batchPermissions(queueArn: string, definition: string): PolicyStatement[] {
  const definitions = [
    arn("batch", `job-definition/${definition}`),
    arn("batch", `job-definition/${definition}:*`),
  ];
  const jobs = arn("batch", "job/*");
  return [
    allow(["batch:SubmitJob"], [queueArn, ...definitions]),
    allow(["batch:TagResource"], [queueArn, ...definitions, jobs]),
    allow(["batch:TerminateJob"], [jobs]),
    allow(["batch:DescribeJobs"], ["*"]), // has no resource-level permissions
    managedRule("StepFunctionsGetEventsForBatchJobsRule"),
  ];
}

function executionPermissions(machineArn: string): PolicyStatement[] {
  return [
    allow(["states:StartExecution"], [machineArn]),
    allow(["states:DescribeExecution", "states:StopExecution"], [executionsOf(machineNameOf(machineArn))]),
    managedRule("StepFunctionsGetEventsForStepFunctionsExecutionRule"),
  ];
}

/** AWS lets a Distributed Map start and watch its children only where the machine's own role says so. */
function mapPermissions({ Label, ResultWriter }: MapState, { machineName, bucketArn }: PermissionContext) {
  const children = [executionsOf(machineName), executionsOf(`${machineName}/${Label}`)];
  const prefix = /^\{% '([a-z-]+\/)'/.exec(ResultWriter.Arguments.Prefix)?.[1];
  if (prefix === undefined) throw new Error(`${Label}: results lie under a prefix of their own`);
  return [
    allow(["states:StartExecution"], [arn("states", `stateMachine:${machineName}`)]),
    allow(["states:DescribeExecution", "states:StopExecution"], children),
    allow(["states:RedriveExecution"], [executionsOf(`${machineName}/${Label}`)]),
    allow(["s3:GetObject"], [`${bucketArn}/runs/*`]),
    allow(
      ["s3:PutObject", "s3:GetObject", "s3:ListMultipartUploadParts", "s3:AbortMultipartUpload"],
      [`${bucketArn}/${prefix}*`],
    ),
  ];
}

/** The EventBridge rule that tells Step Functions when the task or job of a `.sync` state has ended. */
function managedRule(name: string): PolicyStatement {
  return allow(
    ["events:PutTargets", "events:PutRule", "events:DescribeRule"],
    [arn("events", `rule/${name}`)],
  );
}

export function machineArn(name: string): string {
  return arn("states", `stateMachine:${name}`);
}

function machineNameOf(machine: string): string {
  return machine.split(":").at(-1) ?? "";
}

function executionsOf(machine: string): string {
  return arn("states", `execution:${machine}:*`);
}

export function arn(service: string, resource: string): string {
  return `arn:${Aws.PARTITION}:${service}:${Aws.REGION}:${Aws.ACCOUNT_ID}:${resource}`;
}

export function allow(
  actions: readonly string[],
  resources: readonly string[],
  conditions?: Record<string, Record<string, string>>,
): PolicyStatement {
  return new PolicyStatement({ actions: [...actions], resources: [...resources], conditions });
}
