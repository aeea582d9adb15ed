// Checks the invariants after a storm: every planned episode once, with one admitted attempt or a named failure, and training
// on nothing but the admitted ones.
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { AuditRecord, IterationMetrics } from "../../src/learning/metrics.ts";
import { train } from "../../src/learning/train.ts";
import { readClosed } from "../../src/rollout/close.ts";
import { readPlan } from "../../src/rollout/plan.ts";
import { readAttempts } from "../../src/rollout/score.ts";
import { readAdmitted } from "../../src/run/claim.ts";
import {
  attemptPrefix,
  auditKey,
  enginePrefix,
  episodeKey,
  episodePrefix,
  iterationPrefix,
  metricsKey,
  policyPrefix,
} from "../../src/run/keys.ts";
import { EpisodeRecord } from "../../src/run/records.ts";
import { readState } from "../../src/run/run-state.ts";
import { readJson } from "../../src/store/json.ts";
import { manifestKey } from "../../src/store/manifest.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openEngine } from "../../src/training/engines.ts";

/** @returns failures of episodes by name */
export async function checkStormyIteration(store: ObjectStore, run: string): Promise<Record<string, number>> {
  const phase = iterationPrefix(run, 0);
  const [plan, closed] = [await readPlan(store, phase), await readClosed(store, phase)];
  expect((await readState(store, run)).state).toMatchObject({ rolloutsClosed: 1, policyPublished: 1 });
  const closedEpisodes = [...closed.episodes, ...closed.failed].map(({ episode }) => episode);
  expect(closedEpisodes.sort((a, b) => a - b)).toEqual(plan.map(({ episode }) => episode));
  expect(closed.cancelled).toEqual([]);
  for (const { episode, attempt } of closed.episodes) {
    const prefix = episodePrefix(phase, episode);
    expect(await readAdmitted(store, prefix)).toBe(attempt);
    const record = await readJson(store, episodeKey(attemptPrefix(prefix, attempt)), EpisodeRecord);
    expect([record.failure, record.episode]).toEqual([undefined, episode]);
  }
  const failures: Record<string, number> = {};
  for (const { episode, failure } of closed.failed) {
    const prefix = episodePrefix(phase, episode);
    expect(await readAdmitted(store, prefix)).toBeUndefined();
    const attempts = await readAttempts(store, prefix);
    expect(attempts.length).toBeGreaterThan(0);
    for (const record of attempts) expect([record.endReason, record.report]).toEqual(["failure", undefined]);
    failures[failure.name] = (failures[failure.name] ?? 0) + 1;
  }
  const metrics = await readJson(store, metricsKey(phase), IterationMetrics);
  expect(metrics.numbers).toMatchObject({
    "episodes.count": closed.episodes.length,
    "episodes.failed": closed.failed.length,
  });
  const audit = await readJson(store, auditKey(phase), AuditRecord);
  const sampled = closed.episodes.reduce((sum, { sampledTokenCount }) => sum + sampledTokenCount, 0);
  expect(audit.sampledTokenCount).toBe(sampled);
  return failures;
}

/**
 * Trains once more in a store that has nothing of the attempts which do not count: it makes the same networks.
 *
 * @param store a folder, which is changed
 */
export async function checkTrainedOnAdmittedOnly(store: ObjectStore, run: string): Promise<void> {
  const phase = iterationPrefix(run, 0);
  const trained = [policyPrefix(run, 1), enginePrefix(run, 1)];
  const before = await Promise.all(trained.map(async prefix => (await store.get(manifestKey(prefix)))?.body));
  const remove = (key: string) => rmSync(fileURLToPath(`${store.url}/${key}`), { recursive: true });
  for (const { episode } of await readPlan(store, phase)) {
    const prefix = episodePrefix(phase, episode);
    const admitted = await readAdmitted(store, prefix);
    for await (const name of store.folders(prefix))
      if (admitted === undefined || `${prefix}${name}/` !== attemptPrefix(prefix, admitted))
        remove(`${prefix}${name}`);
  }
  for (const prefix of trained) remove(prefix);
  await using engine = await openEngine("onnx", { threads: 2 });
  await train({ run, iteration: 0 }, engine, { store });
  const after = await Promise.all(trained.map(async prefix => (await store.get(manifestKey(prefix)))?.body));
  expect(after).toEqual(before);
  expect(before).not.toContain(undefined);
}
