// The Map Runs of an execution, as its history and its children show them.
import type { LocalRunner } from "../../src/asl/runner.ts";

export interface MapRun {
  readonly arn: string;
  readonly status: "SUCCEEDED" | "FAILED" | "RUNNING";
  readonly succeeded: number;
  readonly failed: number;
  readonly aborted: number;
}

/** Counts the children by the Map's label, so a Map that was retried counts those of all its tries. */
export function mapRunsOf(runner: LocalRunner, executionArn: string): readonly MapRun[] {
  const events = runner.history(executionArn);
  const children = runner.children(executionArn);
  return events.flatMap(({ type, id, mapRunStartedEventDetails: details }) => {
    if (type !== "MapRunStarted") return [];
    const { mapRunArn: arn } = details as { readonly mapRunArn: string };
    const label = arn.split(":").at(-2);
    const count = (wanted: string) =>
      children.filter(
        ({ executionArn: child, status }) => child.split(":").at(-2) === label && status === wanted,
      ).length;
    const hasSucceeded = events.some(
      event => event.type === "MapRunSucceeded" && event.previousEventId === id,
    );
    const hasFailed = events.some(event => event.type === "MapRunFailed" && event.id > id);
    return [
      {
        arn,
        status: hasSucceeded ? "SUCCEEDED" : hasFailed ? "FAILED" : "RUNNING",
        succeeded: count("SUCCEEDED"),
        failed: count("FAILED"),
        aborted: count("ABORTED"),
      } as const,
    ];
  });
}
