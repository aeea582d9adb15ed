// Finds orphaned sandboxes by the tags that their driver gave them.
import type { Task } from "@aws-sdk/client-ecs";
import { TAG } from "./task-request.ts";

export interface OrphanedSandbox {
  readonly arn: string;
  readonly leaseId: string;
  readonly why: "its deadline passed" | "its driver is gone";
}

/** @param tasks all of the cluster that run or start, with their tags: a driver that is not among them is gone */
export function orphanedSandboxes(
  tasks: readonly Pick<Task, "taskArn" | "tags">[],
  now: Date,
): readonly OrphanedSandbox[] {
  const running = new Set(tasks.map(({ taskArn }) => taskArn));
  return tasks.flatMap(({ taskArn: arn, tags = [] }): readonly OrphanedSandbox[] => {
    const tag = (wanted: string): string | undefined => tags.find(({ key }) => key === wanted)?.value;
    const leaseId = tag(TAG.lease);
    if (arn === undefined || leaseId === undefined) return [];
    const driver = tag(TAG.driver);
    if (Date.parse(tag(TAG.deadline) ?? "") <= now.getTime())
      return [{ arn, leaseId, why: "its deadline passed" }];
    const isOrphan = driver !== undefined && !running.has(driver);
    return isOrphan ? [{ arn, leaseId, why: "its driver is gone" }] : [];
  });
}
