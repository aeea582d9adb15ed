// What a Task state calls: `arn:aws:states:::SERVICE:ACTION[.PATTERN]`, or the ARN of a Lambda function.
import { InputError } from "../failure/errors.ts";

export interface Resource {
  readonly arn: string;
  /** `lambda`, `ecs`, `batch`, `states`, `aws-sdk:s3`, …; histories call it resourceType */
  readonly service: string;
  readonly action: string;
  readonly pattern: "request" | "sync" | "sync:2" | "waitForTaskToken";
  /** Set when the ARN is that of a function: its events have names of their own, its output is the bare payload. */
  readonly functionArn: string | undefined;
}

/** The key under which an executor is registered: `ecs:runTask`. */
export function executorKey({ service, action }: Pick<Resource, "service" | "action">): string {
  return `${service}:${action}`;
}

/** What histories show as the action: `runTask.sync`. */
export function actionName({ action, pattern }: Resource): string {
  return pattern === "request" ? action : `${action}.${pattern}`;
}

/** @param where state and path, for messages */
export function parseResource(arn: string, where: string): Resource {
  const service =
    /^arn:aws[\w-]*:states:::((?:aws-sdk:)?[\w-]+):(\w+)(?:\.(sync|sync:2|waitForTaskToken))?$/.exec(arn);
  if (service !== null)
    return {
      arn,
      service: service[1],
      action: service[2],
      pattern: (service[3] ?? "request") as Resource["pattern"],
      functionArn: undefined,
    };
  if (/^arn:aws[\w-]*:lambda:[^:]*:[^:]*:function:[^:]+(:[^:]+)?$/.test(arn))
    return { arn, service: "lambda", action: "invoke", pattern: "request", functionArn: arn };
  const activity = /^arn:aws[\w-]*:states:[^:]*:[^:]*:activity:/.test(arn);
  throw new InputError({
    what: activity ? "not supported: activities" : "invalid task resource",
    where,
    expected: `expected arn:aws:states:::SERVICE:ACTION or the ARN of a function, got ${JSON.stringify(arn)}`,
  });
}
