// What ECS may do instead of what it was asked: the list from which tests pick. Texts are those that AWS was seen to say.

/** Instead of an answer, or of this answer. */
export type RequestFault =
  /** Refused, nothing was done. */
  | { readonly kind: "error"; readonly status: number; readonly type: string; readonly message: string }
  /** Done, but the answer is an error. */
  | { readonly kind: "error-after"; readonly status: number; readonly type: string; readonly message: string }
  /** Nothing was done, and the connection ends. */
  | { readonly kind: "cut-before" }
  /** Done, and the connection ends without an answer. */
  | { readonly kind: "cut-after" }
  /** Done, and no answer ever comes. */
  | { readonly kind: "silent-after" }
  /** RunTask: no task, but reasons; or neither. */
  | {
      readonly kind: "failures";
      readonly failures: readonly {
        readonly reason: string;
        readonly detail?: string;
        readonly arn?: string;
      }[];
    };

/** What becomes of a task that was accepted. */
export type StartFault =
  | {
      readonly kind: "stops";
      readonly stopCode?: string;
      readonly stoppedReason?: string;
      readonly containers?: readonly {
        readonly name: string;
        readonly exitCode?: number;
        readonly reason?: string;
      }[];
    }
  /** Stays PENDING. */
  | { readonly kind: "never" }
  | { readonly kind: "slow"; readonly ms: number }
  /** Is not found by so many descriptions. */
  | { readonly kind: "hidden"; readonly descriptions: number };

const refused = (type: string, message: string): RequestFault => ({
  kind: "error",
  status: 400,
  type,
  message,
});

export const REFUSALS = {
  throttled: refused("ThrottlingException", "Rate exceeded"),
  "throttled look-up": refused(
    "InvalidParameterException",
    "Error retrieving subnet information for [subnet-1]: Rate exceeded (ErrorCode: Throttling)",
  ),
  "throttled look-up of groups": refused(
    "InvalidParameterException",
    "Error retrieving security group information for [sg-1]: Request limit exceeded. (ErrorCode: RequestLimitExceeded)",
  ),
  "invalid parameter": refused("InvalidParameterException", "The subnet ID 'subnet-1' does not exist"),
  "server error": {
    kind: "error",
    status: 500,
    type: "ServerException",
    message: "Service Unavailable. Please try again later.",
  },
  unavailable: { kind: "error", status: 503, type: "ServiceUnavailableException", message: "" },
  "capacity exception": refused(
    "ClientException",
    "Capacity is unavailable at this time. Please try again later or in a different availability zone",
  ),
  "token used": refused("ConflictException", "The clientToken was used with other parameters."),
  "vCPU limit": refused(
    "ClientException",
    "You've reached the limit on the number of vCPUs you can run concurrently",
  ),
  "limit exceeded": refused("LimitExceededException", "The limit for the resource was exceeded."),
  "inactive definition": refused("ClientException", "TaskDefinition is inactive"),
  "missing cluster": refused("ClusterNotFoundException", "Cluster not found."),
  "access denied": refused(
    "AccessDeniedException",
    "User: arn:aws:sts::1:assumed-role/driver is not authorized to perform: ecs:RunTask",
  ),
  "pass role denied": refused(
    "AccessDeniedException",
    "is not authorized to perform: iam:PassRole on resource: role/other",
  ),
  "blocked account": refused("BlockedException", "Your AWS account was blocked. Contact AWS Support"),
  "unknown platform": refused("PlatformUnknownException", "The specified platform version doesn't exist."),
} as const satisfies Record<string, RequestFault>;

export const FAILURES = {
  capacity: {
    kind: "failures",
    failures: [
      {
        reason:
          "Capacity is unavailable at this time. Please try again later or in a different availability zone",
      },
    ],
  },
  resource: { kind: "failures", failures: [{ reason: "RESOURCE:ENI" }] },
  missing: {
    kind: "failures",
    failures: [{ reason: "MISSING", arn: "arn:aws:ecs:eu-west-1:1:container-instance/x" }],
  },
  nothing: { kind: "failures", failures: [] },
} as const satisfies Record<string, RequestFault>;

export const STOPS = {
  "Spot before the start": {
    kind: "stops",
    stopCode: "SpotInterruption",
    stoppedReason: "Your Spot Task was interrupted.",
  },
  "no capacity": {
    kind: "stops",
    stopCode: "TaskFailedToStart",
    stoppedReason:
      "Capacity is unavailable at this time. Please try again later or in a different availability zone",
  },
  "pull timed out": {
    kind: "stops",
    stopCode: "TaskFailedToStart",
    stoppedReason:
      "CannotPullContainerError: ref pull has been retried 5 time(s): failed to resolve reference: dial tcp 10.0.0.1:443: i/o timeout",
  },
  "image missing": {
    kind: "stops",
    stopCode: "TaskFailedToStart",
    stoppedReason:
      'CannotPullContainerError: ref pull has been retried 1 time(s): failed to resolve reference "1.dkr.ecr.eu-west-1.amazonaws.com/t1/tasks:x": not found',
  },
  "pull forbidden": {
    kind: "stops",
    stopCode: "TaskFailedToStart",
    stoppedReason: "CannotPullContainerError: pull access denied: 403 Forbidden",
  },
  "resources not initialised": {
    kind: "stops",
    stopCode: "TaskFailedToStart",
    stoppedReason:
      "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: unable to retrieve ecr registry auth",
  },
  "wrong machine": {
    kind: "stops",
    stopCode: "TaskFailedToStart",
    stoppedReason: "Task failed to start",
    containers: [{ name: "agent", reason: "CannotStartContainerError: exec /.t1/ld.so: exec format error" }],
  },
  "killed from outside": {
    kind: "stops",
    stopCode: "EssentialContainerExited",
    stoppedReason: "Essential container in task exited",
    containers: [
      { name: "agent", exitCode: 137 },
      { name: "verifier", exitCode: 137 },
    ],
  },
  "host lost": {
    kind: "stops",
    stopCode: "InfrastructureHealth",
    stoppedReason: "The host on which the task ran is unhealthy",
  },
} as const satisfies Record<string, StartFault>;
