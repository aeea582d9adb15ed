// Error names that Step Functions and the services behind it report. They are exact and case-sensitive: a retrier with
// `Ecs.` never fires (wellcomecollection/catalogue-pipeline#3554), so definitions, executors and faults take them from
// here, and the lint refuses what is not here.

/** Names that the state machine itself makes. Source: Step Functions developer guide, "Error names". */
export const STATES_ERRORS = [
  "States.ALL",
  "States.DataLimitExceeded",
  "States.ExceedToleratedFailureThreshold",
  "States.HeartbeatTimeout",
  "States.Http.Socket",
  "States.ItemReaderFailed",
  "States.NoChoiceMatched",
  "States.Permissions",
  "States.QueryEvaluationError",
  "States.ResultWriterFailed",
  "States.Runtime",
  "States.TaskFailed",
  "States.Timeout",
] as const;

/**
 * Names of the optimised integrations, as seen in executions: ECS.* catalogue-pipeline#3554 and #3496, Batch.*
 * ASFHyP3/hyp3#911 and #805 and Netflix/metaflow#1185, Lambda.* developer guide "Handle transient Lambda errors".
 */
export const SERVICE_ERRORS = [
  "AmazonECS.Unknown",
  "ECS.AmazonECSException",
  "ECS.ClientException",
  "ECS.InvalidParameterException",
  "ECS.ServerException",
  "ECS.TaskFailedToStartException",
  "Batch.AWSBatchException",
  "Batch.ClientException",
  "Batch.ServerException",
  "Batch.TooManyRequestsException",
  "Lambda.AWSLambdaException",
  "Lambda.ClientExecutionTimeoutException",
  "Lambda.ResourceNotFoundException",
  "Lambda.SdkClientException",
  "Lambda.ServiceException",
  "Lambda.TooManyRequestsException",
  "Lambda.Unknown",
  "Sandbox.Timedout",
  "StepFunctions.ExecutionAlreadyExistsException",
  "StepFunctions.ExecutionDoesNotExistException",
  "StepFunctions.ExecutionLimitExceededException",
  "StepFunctions.StateMachineDoesNotExistException",
  "S3.NoSuchBucketException",
  "S3.NoSuchKeyException",
  "S3.S3Exception",
] as const;

export type StatesErrorName = (typeof STATES_ERRORS)[number];
export type ServiceErrorName = (typeof SERVICE_ERRORS)[number];
