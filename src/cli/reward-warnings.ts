// What the reward setting means for the tasks of a pool, from what `t1 tasks check` has counted.
import { existsSync } from "node:fs";
import { playsDemonstrations, type RunConfig } from "../config/run-config.ts";
import { storedPoolName } from "../run/stored-pool.ts";
import { CheckReport } from "./check-report.ts";
import { defaultReport } from "./default-report.ts";

/** What solved tasks earn may differ by this much before it is worth a word. */
const UNEVEN = 2;

/**
 * A dense reward is assertions passed / scale: the same scale pays a task of 2 assertions a tenth of one of 20, and a
 * task whose tests report none its whole outcome.
 *
 * @returns sentences for a person; none where nothing is known of the pool
 */
export function rewardWarnings(config: RunConfig): readonly string[] {
  const { reward, tasks } = config;
  if (playsDemonstrations(config) || reward.kind !== "dense" || storedPoolName(tasks.pool) !== undefined)
    return [];
  const file = defaultReport(tasks.pool);
  if (!existsSync(file)) return [];
  const report = new CheckReport(file);
  report[Symbol.dispose]();
  const counts = [...report.entries()].flatMap(({ check }) => check.assertions ?? []);
  return describeRewards(counts, reward.scale);
}

/** @param assertions of each task; 0 where the tests report none */
export function describeRewards(assertions: readonly number[], scale: number): readonly string[] {
  const counted = assertions.filter(count => count > 0);
  if (counted.length === 0) return [];
  const [least, most] = [Math.min(...counted), Math.max(...counted)];
  const fix = "reward.kind: ratio pays every solved task 1";
  const warnings: string[] = [];
  if (most > UNEVEN * least || scale > UNEVEN * most || UNEVEN * scale < least)
    warnings.push(
      `reward: dense, scale ${scale}: the pool's tasks have ${least === most ? least : `${least} to ${most}`} assertions, so solving one earns ${(least / scale).toFixed(2)}${least === most ? "" : ` to ${(most / scale).toFixed(2)}`}; ${fix}`,
    );
  const without = assertions.length - counted.length;
  if (without > 0)
    warnings.push(
      `reward: dense: the tests of ${without} of ${assertions.length} tasks report no assertions, so these earn their outcome (1), the others assertions / ${scale}; ${fix}`,
    );
  return warnings;
}
