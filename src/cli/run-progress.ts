// Shows the events of a run: what is at work, and one line per finished iteration.
import { type IterationMetrics, readMetrics } from "../learning/metrics.ts";
import { iterationPrefix } from "../run/keys.ts";
import type { OnRunEvent, RunEvent } from "../run/run-events.ts";
import type { RunChange } from "../run/run-record.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { MetricName } from "../training/metrics.ts";
import { formatSeconds, type Progress } from "./progress.ts";
import { percent } from "./table.ts";

/** Iterations over which the remaining time is estimated. */
const RECENT = 10;

export function showRun(run: string, store: ObjectStore, progress: Progress): OnRunEvent {
  let episodes = 0;
  let total: number | undefined;
  let at = "";
  const recentMs: number[] = [];
  const estimate = (stages: readonly number[], left: number): string => {
    const ms = stages.reduce((sum, time) => sum + time, 0);
    recentMs.push(ms);
    if (recentMs.length > RECENT) recentMs.shift();
    const meanMs = recentMs.reduce((sum, time) => sum + time, 0) / recentMs.length;
    return `${(ms / 1000).toFixed(1)} s, ${formatSeconds((left * meanMs) / 1000)} left`;
  };
  return (event: RunEvent): void => {
    switch (event.kind) {
      case "stage":
        episodes = 0;
        total = event.total;
        at = `${event.evaluation === undefined ? `iteration ${event.iteration + 1}` : `evaluation ${event.evaluation}`}  ${event.stage}`;
        progress.begin(at, event.total);
        return;
      case "episode":
        progress.advance(++episodes, total);
        return;
      case "train-step":
        if (event.done === 1) progress.begin(at, event.total);
        progress.advance(event.done, event.total);
        return;
      case "trouble":
        progress.line(`${event.state}: ${event.text}`);
        return;
      case "iteration": {
        const { iteration, iterations, timings } = event;
        const took =
          timings === undefined ? "" : `  ${estimate(Object.values(timings), iterations - iteration - 1)}`;
        readMetrics(store, iterationPrefix(run, iteration))
          .then(metrics => progress.line(`${formatIteration(iteration, iterations, metrics)}${took}`))
          .catch(error => progress.line(String(error)));
        return;
      }
      default:
        event satisfies never;
    }
  };
}

export function describeChange({ key, old, new: now, iteration }: RunChange): string {
  return `changed from iteration ${iteration + 1} on: ${key}: ${old ?? "not set"}, now ${now}`;
}

/** An iteration as `watch` prints it: a line for a person, or of JSON. */
export function iterationLine(
  {
    iteration,
    iterations,
    json,
  }: { readonly iteration: number; readonly iterations: number; readonly json: boolean },
  metrics: IterationMetrics,
): string {
  return json
    ? `${JSON.stringify({ iteration, ...metrics })}\n`
    : `${formatIteration(iteration, iterations, metrics)}\n`;
}

/** The numbers of an iteration's line, in their order. */
const SHOWN: readonly (readonly [MetricName, (value: number) => string])[] = [
  ["episodes.meanReward", value => `reward ${value.toFixed(3)}`],
  ["episodes.resolvedRate", value => `resolved ${percent(value)}`],
  ["episodes.meanTurns", value => `turns ${value.toFixed(1)}`],
  ["groups.uniform", value => `uniform groups ${value}`],
  ["critic.explainedVariance", value => `EV ${value.toFixed(2)}`],
  ["policy.entropy", value => `entropy ${value.toFixed(3)}`],
  ["mismatch.replayed.mean", value => `|Δ log p| ${value.toExponential(1)}`],
  ["mismatch.free.mean", value => `with free routing ${value.toExponential(1)}`],
  ["sft.lastLoss", value => `loss ${value.toFixed(4)}`],
  ["episodes.failed", value => `${value} failed`],
];

/** One line of what an iteration came to. */
function formatIteration(iteration: number, iterations: number, { numbers }: IterationMetrics): string {
  const parts = [
    `iteration ${iteration + 1}/${iterations}`,
    ...SHOWN.flatMap(([name, format]) => {
      const value = numbers[name];
      return value === undefined ? [] : [format(value)];
    }),
  ];
  return parts.join("  ");
}
