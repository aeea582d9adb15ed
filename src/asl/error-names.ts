// Error names that Step Functions and the services behind it report. Names are case-sensitive: a retrier with `Ecs.` never
// fires (wellcomecollection/catalogue-pipeline#3554), so executors take them from here.

/** Names of the state machine's own errors. Source: Step Functions developer guide, "Error names". */
export type StatesErrorName =
  | "States.ALL"
  | "States.DataLimitExceeded"
  | "States.ExceedToleratedFailureThreshold"
  | "States.HeartbeatTimeout"
  | "States.Http.Socket"
  | "States.ItemReaderFailed"
  | "States.NoChoiceMatched"
  | "States.Permissions"
  | "States.QueryEvaluationError"
  | "States.ResultWriterFailed"
  | "States.Runtime"
  | "States.TaskFailed"
  | "States.Timeout";

/**
 * Names of the optimised integrations that were seen in executions: ECS.* catalogue-pipeline#3554 and #3496, Batch.*
 * ASFHyP3/hyp3#911 and #805 and Netflix/metaflow#1185, Lambda.* developer guide "Handle transient Lambda errors".
 */
export type ServiceErrorName =
  | "AmazonECS.Unknown"
  | "ECS.AmazonECSException"
  | "ECS.ClientException"
  | "ECS.InvalidParameterException"
  | "ECS.ServerException"
  | "ECS.TaskFailedToStartException"
  | "Batch.AWSBatchException"
  | "Batch.ClientException"
  | "Batch.ServerException"
  | "Batch.TooManyRequestsException"
  | "Lambda.AWSLambdaException"
  | "Lambda.ClientExecutionTimeoutException"
  | "Lambda.ResourceNotFoundException"
  | "Lambda.SdkClientException"
  | "Lambda.ServiceException"
  | "Lambda.TooManyRequestsException"
  | "Lambda.Unknown"
  | "Sandbox.Timedout"
  | "StepFunctions.ExecutionAlreadyExistsException"
  | "StepFunctions.ExecutionDoesNotExistException"
  | "StepFunctions.ExecutionLimitExceededException"
  | "StepFunctions.StateMachineDoesNotExistException"
  | "S3.S3Exception";
