// Metrics in CloudWatch's embedded format: a line of JSON in the log, which costs no request. Written for the run and
// once more without it, since alarms are on all runs together and CloudWatch adds nothing up over dimensions.
import { logRaw } from "./log.ts";

type Unit = "None" | "Count" | "Percent";

export function emitMetrics(
  metrics: Readonly<Record<string, { readonly value: number; readonly unit: Unit }>>,
  run?: string,
): void {
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
  logRaw(line); // in another form CloudWatch would not find it
}
