// Every error name that a state machine may retry or catch, with who throws it. Names are exact and case-sensitive: a
// retrier spelt "Ecs." never fires (wellcomecollection/catalogue-pipeline#3554). Our own names are those of errors.ts.
import { ERROR_NAMES, type ErrorName } from "./errors.ts";

/** Who can throw an error at a state: an integration, our code in a Lambda function, or Step Functions itself. */
export type ErrorSource = "ecs" | "batch" | "lambda" | "execution" | "map" | "any";

const AWS_ERRORS = {
  "ECS.AmazonECSException": { from: "ecs", meaning: "no capacity, or too many requests" },
  "ECS.ServerException": { from: "ecs", meaning: "ECS failed" },
  "ECS.InvalidParameterException": {
    from: "ecs",
    meaning: "a throttled look-up of subnets or groups, or a parameter that is really wrong",
  },
  "AmazonECS.Unknown": { from: "ecs", meaning: "RunTask answered with failures and no task" },
  "ECS.TaskFailedToStartException": { from: "ecs", meaning: "the task never started, e.g. its image" },
  "Batch.AWSBatchException": { from: "batch", meaning: "a request to Batch was refused or throttled" },
  "Batch.ServerException": { from: "batch", meaning: "Batch failed" },
  "Lambda.ServiceException": { from: "lambda", meaning: "Lambda failed" },
  "Lambda.AWSLambdaException": { from: "lambda", meaning: "Lambda failed" },
  "Lambda.SdkClientException": { from: "lambda", meaning: "Step Functions did not reach Lambda" },
  "Lambda.TooManyRequestsException": { from: "lambda", meaning: "no free concurrency" },
  "Lambda.Unknown": { from: "lambda", meaning: "the function ended without an answer, e.g. out of memory" },
  "Sandbox.Timedout": { from: "lambda", meaning: "the function ran into its time limit" },
  "StepFunctions.ExecutionAlreadyExistsException": {
    from: "execution",
    meaning: "an execution of that name was started before",
  },
  "States.TaskFailed": { from: "any", meaning: "any error of a task but a time-out" },
  "States.Timeout": { from: "any", meaning: "the state's time limit" },
  "States.HeartbeatTimeout": { from: "any", meaning: "no heartbeat within the limit" },
  "States.ALL": { from: "any", meaning: "everything but States.DataLimitExceeded and States.Runtime" },
  "States.ExceedToleratedFailureThreshold": { from: "map", meaning: "more items failed than tolerated" },
  "States.ItemReaderFailed": { from: "map", meaning: "the list of items cannot be read" },
  "States.ResultWriterFailed": { from: "map", meaning: "results cannot be written" },
} as const satisfies Record<string, { readonly from: ErrorSource; readonly meaning: string }>;

export type MachineErrorName = keyof typeof AWS_ERRORS | ErrorName;

/** @returns undefined for a name that nothing throws */
export function sourceOf(name: string): ErrorSource | undefined {
  if (ERROR_NAMES.some(own => own === name)) return "lambda";
  return name in AWS_ERRORS ? AWS_ERRORS[name as keyof typeof AWS_ERRORS].from : undefined;
}

type NameFrom<Source extends ErrorSource> = {
  [Name in keyof typeof AWS_ERRORS]: (typeof AWS_ERRORS)[Name]["from"] extends Source ? Name : never;
}[keyof typeof AWS_ERRORS];

function namesFrom<Source extends ErrorSource>(source: Source): NameFrom<Source>[] {
  return Object.entries(AWS_ERRORS).flatMap(([name, { from }]) =>
    from === source ? [name as NameFrom<Source>] : [],
  );
}

/** RunTask did not start anything: it may be asked again. */
export const TASK_NOT_STARTED = namesFrom("ecs").filter(name => name !== "ECS.InvalidParameterException");

/** Lambda itself, or our storage, failed for the moment; a stage may always run again. */
export const STAGE_MAY_RUN_AGAIN = [
  ...namesFrom("lambda"),
  "StoreUnavailable" satisfies ErrorName,
  "StageTimedOut" satisfies ErrorName,
] as const;

export const JOB_NOT_SUBMITTED = namesFrom("batch");
