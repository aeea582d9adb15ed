// Which tasks of the cluster nobody can still want.

export interface RunningTask {
  readonly arn: string;
  /** As ECS reports it: `family:t1-driver` for a task of its own, `service:t1-sampler` for one of a service. */
  readonly group: string;
  readonly createdAt: Date;
}

/** Tasks of services live as long as their service; every other one has a longest life. @returns ARNs */
export function tooOld(tasks: readonly RunningTask[], maxAgeSeconds: number, now: Date): string[] {
  return tasks
    .filter(({ group }) => !group.startsWith("service:"))
    .filter(({ createdAt }) => (now.getTime() - createdAt.getTime()) / 1000 > maxAgeSeconds)
    .map(({ arn }) => arn);
}
