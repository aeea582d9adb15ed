// Map Runs as DescribeMapRun shows them.

export interface MapRunCounts {
  readonly pending: number;
  readonly running: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly timedOut: number;
  readonly aborted: number;
  readonly total: number;
  readonly resultsWritten: number;
}

export interface MapRun {
  readonly mapRunArn: string;
  readonly executionArn: string;
  readonly status: "RUNNING" | "SUCCEEDED" | "FAILED" | "ABORTED";
  readonly maxConcurrency: number;
  readonly toleratedFailureCount: number;
  readonly toleratedFailurePercentage: number;
  readonly redriveCount: number;
  readonly itemCounts: MapRunCounts;
  readonly executionCounts: MapRunCounts;
}

export class MapRuns {
  readonly #runs = new Map<string, MapRun>();

  set(run: MapRun): void {
    this.#runs.set(run.mapRunArn, run);
  }

  get(arn: string): MapRun | undefined {
    return this.#runs.get(arn);
  }

  of(executionArn: string): readonly MapRun[] {
    return [...this.#runs.values()].filter(run => run.executionArn === executionArn);
  }
}
