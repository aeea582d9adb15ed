// Lines for CloudWatch.
import type { StageServices } from "../src/stages/stage.ts";

/** A function that runs outside Lambda, as in tests, has no log: its errors say everything. */
const isInLambda = process.env.AWS_LAMBDA_FUNCTION_NAME !== undefined;

export function logError(line: Readonly<Record<string, unknown>>): void {
  if (isInLambda) console.error(line);
}

export function logWarning(message: string): void {
  if (isInLambda) console.warn({ message });
}

/**
 * Writes metrics in CloudWatch's embedded format: a line of JSON in the log, which costs no request. It writes
 * each metric with the run and once more without it, since alarms cover all runs and CloudWatch does not sum dimensions.
 */
export const emitMetrics: StageServices["onMetrics"] = (metrics, run) => {
  if (!isInLambda) return;
  const line = {
    _aws: {
      Timestamp: Date.now(),
      CloudWatchMetrics: [
        {
          Namespace: "T1",
          Dimensions: run === undefined ? [[]] : [[], ["run"]],
          Metrics: Object.entries(metrics).map(([Name, { unit: Unit }]) => ({ Name, Unit })),
        },
      ],
    },
    ...(run !== undefined && { run }),
    ...Object.fromEntries(Object.entries(metrics).map(([name, { value }]) => [name, value])),
  };
  // console.log would wrap the line in the function's own log format, where CloudWatch finds no metrics.
  process.stdout.write(`${JSON.stringify(line)}\n`);
};
