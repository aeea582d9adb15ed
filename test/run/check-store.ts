// Checks the invariants of every finished run, however often its runner was killed.
import { expect } from "vitest";
import { readClosed } from "../../src/rollout/close.ts";
import { readPlan } from "../../src/rollout/plan.ts";
import { listAttempts, readAdmitted } from "../../src/run/claim.ts";
import { attemptPrefix, episodeKey, episodePrefix, iterationPrefix } from "../../src/run/keys.ts";
import { EpisodeRecord } from "../../src/run/records.ts";
import { readRun } from "../../src/run/run-record.ts";
import { readState } from "../../src/run/run-state.ts";
import { verifyVersion } from "../../src/run/version.ts";
import { readJson } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

/** @returns how many attempts were begun and never recorded */
export async function checkFinishedRun(store: ObjectStore, run: string): Promise<number> {
  const { config } = await readRun(store, run);
  const { iterations } = config.training;
  const { state } = await readState(store, run);
  expect(state).toMatchObject({ rolloutsClosed: iterations, policyPublished: iterations });
  const seen = new Map<string, number>();
  let interrupted = 0;
  for (let iteration = 0; iteration < iterations; iteration++) {
    const phase = iterationPrefix(run, iteration);
    const [plan, closed] = [await readPlan(store, phase), await readClosed(store, phase)];
    expect(closed.policyVersion).toBe(iteration);
    const counted = [...closed.episodes, ...closed.failed, ...closed.cancelled].map(entry => entry.episode);
    expect(
      counted.sort((a, b) => a - b),
      `every planned episode once, ${phase}`,
    ).toEqual(plan.map(planned => planned.episode));
    for (const { task } of plan) seen.set(task, (seen.get(task) ?? 0) + 1);
    for (const { episode, attempt } of closed.episodes) {
      const prefix = episodePrefix(phase, episode);
      expect(await readAdmitted(store, prefix)).toBe(attempt);
      for (const begun of await listAttempts(store, prefix)) {
        const key = episodeKey(attemptPrefix(prefix, begun));
        if ((await store.head(key)) === undefined) interrupted++;
        else if (begun !== attempt && (await readJson(store, key, EpisodeRecord)).failure === undefined)
          throw new Error(`${prefix}: attempt ${begun} finished beside the admitted ${attempt}`);
      }
      const record = await readJson(store, episodeKey(attemptPrefix(prefix, attempt)), EpisodeRecord);
      expect(record.policyVersion).toBe(iteration);
    }
  }
  // Tasks were taken evenly: the pool's cursor neither skipped nor repeated.
  expect(Math.max(...seen.values()) - Math.min(...seen.values())).toBeLessThanOrEqual(1);
  await verifyVersion(store, { run, version: iterations });
  return interrupted;
}
