// Why ECS did not do what it was asked, by what can be done about it. One exception may mean several things: a throttled
// look-up of subnets hides behind InvalidParameterException, and a full account behind ClientException.
import type { Failure as EcsFailure } from "@aws-sdk/client-ecs";
import { Failure, InputError } from "../../failure/errors.ts";

export type RefusalKind =
  /** Too many requests. */
  | "throttled"
  /** ECS failed, or nobody knows whether it did what it was asked. */
  | "unreachable"
  /** AWS has no room in this market and these subnets. */
  | "no-capacity"
  /** The account runs as much as it may. */
  | "account-limit"
  /** The token of this request was used for another one. */
  | "token-used"
  /** There is no such task. */
  | "no-task"
  /** A person has to change something. */
  | "misconfigured";

export class EcsRefusal extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

const PASSING: readonly RefusalKind[] = ["throttled", "unreachable", "no-capacity", "account-limit"];

/** Whether the same request may succeed later. */
export function mayPass({ kind }: EcsRefusal): boolean {
  return PASSING.includes(kind);
}

/** @param error of a call of the SDK */
export function refusalOfError(error: unknown): EcsRefusal {
  if (error instanceof EcsRefusal) return error;
  const { name, message } = error instanceof Error ? error : { name: "Error", message: `${error}` };
  return new EcsRefusal(kindOfError(error, name, message), `${name}: ${message}`, { cause: error });
}

const THROTTLES = ["ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded"];
/** Also of EC2, which RunTask asks for subnets and groups. */
const THROTTLE_TEXT = /rate exceeded|request ?limit ?exceeded|throttl/i;
const ACCOUNT_LIMIT_TEXT = /reached the limit on the number of (tasks|vcpus)/i;
const CAPACITY_TEXT = /capacity is unavailable|no spot capacity/i;
const NO_TASK_TEXT = /task was not found/i;

function kindOfError(error: unknown, name: string, message: string): RefusalKind {
  const status = statusOf(error);
  if (THROTTLES.includes(name) || status === 429) return "throttled";
  if (name === "InvalidParameterException" && THROTTLE_TEXT.test(message)) return "throttled";
  if (ACCOUNT_LIMIT_TEXT.test(message) || name === "LimitExceededException") return "account-limit";
  if (CAPACITY_TEXT.test(message)) return "no-capacity";
  if (name === "ConflictException") return "token-used";
  if (NO_TASK_TEXT.test(message)) return "no-task";
  // Without an answer of ECS it is the way to it: time-outs, cut connections, names that do not resolve.
  return status === undefined || status >= 500 ? "unreachable" : "misconfigured";
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
  // Of an answer that was cut off the SDK knows the status, and that it is no answer.
  return "$response" in error && !("$fault" in error) ? undefined : $metadata?.httpStatusCode;
}

/** @param failures of a RunTask that started nothing */
export function refusalOfFailures(failures: readonly EcsFailure[]): EcsRefusal {
  const [{ reason, detail, arn } = {}] = failures;
  if (reason === undefined)
    return new EcsRefusal("unreachable", "RunTask started no task and does not say why");
  const text = [reason, detail, arn].filter(part => part !== undefined).join(", ");
  const isFull = CAPACITY_TEXT.test(text) || /^(RESOURCE|AGENT|ATTRIBUTE$)/.test(reason);
  const kind = ACCOUNT_LIMIT_TEXT.test(text) ? "account-limit" : isFull ? "no-capacity" : "misconfigured";
  return new EcsRefusal(kind, `RunTask started no task: ${text}`);
}

/** What a refusal is to whoever asked for a sandbox, when it did not pass in time. */
export function failureOfRefusal(what: string, refusal: EcsRefusal): Error {
  if (mayPass(refusal)) {
    const detail = `${what} cannot be had: ${refusal.message}`;
    return new Failure("SandboxUnavailable", detail, { retryable: true, cause: refusal });
  }
  return new InputError(
    {
      what: `ECS refuses to run a sandbox: ${refusal.message}`,
      where: what,
      expected: "a cluster, subnets, a task definition that is active, and a role that may run it",
      fix: "compare the driver's environment and role with the deployment (infra/stacks/sandboxes.ts), or deploy again",
    },
    { cause: refusal },
  );
}
