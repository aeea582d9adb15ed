// Trains on a closed iteration: from the closed list and the state of version v to version v + 1.
import { z } from "zod";
import { playsDemonstrations } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import type { NamedContent } from "../files/content.ts";
import { readModelConfig } from "../model/checkpoint.ts";
import { routeLayout } from "../model/routing.ts";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { readClosed } from "../rollout/close.ts";
import { auditKey, iterationPrefix, metricsKey } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import {
  asCritic,
  openCritic,
  openEngineState,
  openPolicy,
  type Version,
  writeEngineState,
  writePolicy,
} from "../run/version.ts";
import { encodeJson, parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { methodOf } from "../training/algorithms.ts";
import { type Batch, toBatch } from "../training/batch.ts";
import type { Engine, StoredVersion, TrainServices } from "../training/engine.ts";
import { auditEpisode } from "../trajectory/audit.ts";
import { loadBatch } from "./load-batch.ts";
import { AuditRecord, describeIteration, IterationMetrics } from "./metrics.ts";

export interface TrainInput {
  readonly run: string;
  readonly iteration: number;
}

const RESULTS_FILE = "results.json";

/** What is known of an iteration once it was trained; kept beside the state, so that both are of one training. */
const Results = z.strictObject({ metrics: IterationMetrics, audit: AuditRecord });

/**
 * Writes version v + 1, metrics and audit. Run again it trains no second time once the engine's state counts, and writes
 * what is missing of the rest from it: a second training on a GPU may come to other bits.
 *
 * @throws InputError when nothing can be trained on, or as the engine does
 */
export async function train(
  { run, iteration }: TrainInput,
  engine: Engine,
  services: TrainServices,
): Promise<void> {
  const { store } = services;
  const phase = iterationPrefix(run, iteration);
  const next = { run, version: iteration + 1 };
  const state =
    (await openEngineState(store, next)) ??
    (await writeEngineState(store, next, await trainVersion({ run, iteration }, engine, services)));
  const { metrics, audit } = parseJson(await state.read(RESULTS_FILE), state.where + RESULTS_FILE, Results);
  await putOnce(store, auditKey(phase), encodeJson(audit));
  await putOnce(store, metricsKey(phase), encodeJson(metrics));
  const before = await openPolicy(store, { run, version: iteration });
  await writePolicy(store, next, engine.policyOf(state, before));
}

/** @returns the files of the engine's state after the iteration */
async function trainVersion(
  { run, iteration }: TrainInput,
  engine: Engine,
  services: TrainServices,
): Promise<NamedContent[]> {
  const { store } = services;
  const { config } = await readRun(store, run);
  const phase = iterationPrefix(run, iteration);
  const closed = await readClosed(store, phase);
  const batch = await loadBatch(store, phase, closed);
  if (batch.episodes.length === 0) {
    throw new InputError({
      what: "no episode of the iteration can be trained on",
      where: phase,
      expected: "at least one with a sampled token",
      fix: "look at its failures in closed.json",
    });
  }
  const from = await openVersion(store, { run, version: iteration });
  const layout = playsDemonstrations(config) ? undefined : routeLayout(await readModelConfig(from.policy));
  const { policyVersion } = closed;
  const audits = batch.recorded.flatMap(chunks => auditEpisode(chunks, { layout, policyVersion }));
  const seed = deriveSeed(config.seed, "train", iteration);
  const { training } = config;
  const { metrics, state, critic } = await engine.train(
    {
      iteration,
      batch: "permuteRewards" in training && training.permuteRewards ? permuteRewards(batch, seed) : batch,
      method: methodOf(config),
      sampling: config.sampling,
      planned: config.rollout,
      seed,
      from,
      sampledBy:
        closed.policyVersion === iteration
          ? undefined
          : await openVersion(store, { run, version: closed.policyVersion }),
      dumps: phase,
    },
    services,
  );
  const total = (count: "receiptCount" | "tokenCount" | "sampledTokenCount"): number =>
    audits.reduce((sum, audit) => sum + audit[count], 0);
  const results: z.infer<typeof Results> = {
    metrics: describeIteration(closed, metrics),
    audit: {
      policyVersion,
      chunkCount: audits.length,
      receiptCount: total("receiptCount"),
      tokenCount: total("tokenCount"),
      sampledTokenCount: total("sampledTokenCount"),
    },
  };
  return [
    ...state,
    ...(await Array.fromAsync(asCritic(critic))),
    { path: RESULTS_FILE, body: encodeJson(results) },
  ];
}

async function openVersion(store: ObjectStore, version: Version): Promise<StoredVersion> {
  const [policy, state, critic] = await Promise.all([
    openPolicy(store, version),
    openEngineState(store, version),
    openCritic(store, version),
  ]);
  return { version: version.version, policy, state, critic };
}

/** Hands the rewards to other episodes: the control in which nothing can be learned. */
function permuteRewards({ episodes }: Batch, seed: string): Batch {
  const rewards = new RandomStream(deriveSeed(seed, "permuted rewards")).shuffle(
    episodes.map(episode => episode.reward),
  );
  return toBatch(episodes.map((episode, index) => ({ ...episode, reward: rewards[index] })));
}
