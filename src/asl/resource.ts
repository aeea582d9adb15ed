// The resource of a Task state: `arn:aws:states:::SERVICE:ACTION[.PATTERN]`.
import { InputError } from "../failure/errors.ts";
import { refuse } from "./unsupported.ts";

export interface Resource {
  readonly arn: string;
  /** `lambda`, `ecs`, `batch`, `states`, …; histories call it resourceType */
  readonly service: string;
  readonly action: string;
  readonly pattern: "request" | "sync" | "sync:2";
}

/** Services whose executors only wait for the end of what they start. */
const ONLY_SYNC = ["ecs:runTask", "batch:submitJob"];

/** Key of the executor for a resource: `ecs:runTask`. */
export function executorKey({ service, action }: Pick<Resource, "service" | "action">): string {
  return `${service}:${action}`;
}

/** The action as histories show it: `runTask.sync`. */
export function actionName({ action, pattern }: Resource): string {
  return pattern === "request" ? action : `${action}.${pattern}`;
}

/** @param where state and path, for messages */
export function parseResource(arn: string, where: string): Resource {
  const match =
    /^arn:aws[\w-]*:states:::((?:aws-sdk:)?[\w-]+):(\w+)(?:\.(sync|sync:2|waitForTaskToken))?$/.exec(arn);
  if (match === null) throw notAnIntegration(arn, where);
  const [, service, action, pattern = "request"] = match;
  if (pattern === "waitForTaskToken") throw refuse(".waitForTaskToken", where, "wait by .sync");
  const key = executorKey({ service, action });
  if (pattern === "request" && ONLY_SYNC.includes(key))
    throw refuse(`${key} without .sync`, where, `write ${arn}.sync`);
  return { arn, service, action, pattern: pattern as Resource["pattern"] };
}

function notAnIntegration(arn: string, where: string): InputError {
  if (/^arn:aws[\w-]*:states:[^:]*:[^:]*:activity:/.test(arn))
    return refuse("activities", where, "call a function, a task or a job");
  if (/^arn:aws[\w-]*:lambda:/.test(arn))
    return refuse("a function's ARN as Resource", where, "write arn:aws:states:::lambda:invoke");
  return new InputError({
    what: "invalid task resource",
    where,
    expected: `expected arn:aws:states:::SERVICE:ACTION, got ${JSON.stringify(arn)}`,
  });
}
