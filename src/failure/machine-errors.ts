// Every error name that a state machine may retry or catch, with its source. Names are case-sensitive: a
// retrier spelt "Ecs." never fires (wellcomecollection/catalogue-pipeline#3554). Our own names are those of errors.ts.
import { ERROR_NAMES, type ErrorName } from "./errors.ts";

/** The source of an error at a state: an integration, our code in a Lambda function, or Step Functions itself. */
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

/** @returns undefined for an unknown name */
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

/** Errors of RunTask when it started nothing, so that a machine may call it again. */
export const TASK_NOT_STARTED = namesFrom("ecs").filter(name => name !== "ECS.InvalidParameterException");

/** Transient errors of Lambda or of our storage; a stage may always run again. */
export const STAGE_MAY_RUN_AGAIN = [
  ...namesFrom("lambda"),
  "StoreUnavailable" satisfies ErrorName,
  "StageTimedOut" satisfies ErrorName,
] as const;

export const JOB_NOT_SUBMITTED = namesFrom("batch");
