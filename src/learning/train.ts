// Trains on a closed iteration: a pure function from the closed list and the state of version v to that of v + 1.
import { z } from "zod";
import type { PpoRunConfig, SftConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import type { FileSet, NamedContent } from "../files/content.ts";
import {
  CONFIG_FILE,
  encodeModelFiles,
  type Model,
  readModel,
  travellingFiles,
} from "../model/checkpoint.ts";
import { criticFromActor, type Head } from "../model/parameters.ts";
import { routeLayout } from "../model/routing.ts";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { readClosed } from "../rollout/close.ts";
import { auditKey, enginePrefix, iterationPrefix, metricsKey } from "../run/keys.ts";
import type { ClosedEpisode, ClosedPhase } from "../run/records.ts";
import { readRun } from "../run/run-record.ts";
import {
  asCritic,
  openCritic,
  openEngineState,
  openPolicy,
  writeEngineState,
  writePolicy,
} from "../run/version.ts";
import { encodeJson, parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import type { TrainingEpisode } from "../training/episode.ts";
import { Network, type NetworkState, type Sessions } from "../training/onnx/network.ts";
import { type PpoNetworks, trainPpo } from "../training/onnx/train-ppo.ts";
import { trainSft } from "../training/onnx/train-sft.ts";
import { decodeNetworkState, encodeNetworkState } from "../training/optimizer-file.ts";
import { auditEpisode, type ChunkAudit } from "../trajectory/audit.ts";
import { loadBatch } from "./load-batch.ts";
import { AuditRecord, IterationMetrics } from "./metrics.ts";

export interface TrainInput {
  readonly run: string;
  readonly iteration: number;
}

export interface TrainServices {
  readonly store: ObjectStore;
  readonly sessions: Sessions;
  readonly onStep?: (done: number, total: number) => void;
}

const ACTOR_FILE = "actor.safetensors";
const CRITIC_FILE = "critic.safetensors";
const RESULTS_FILE = "results.json";

/** What is known of an iteration once it was trained; kept beside the state, so that both are of one training. */
const Results = z.strictObject({ metrics: IterationMetrics, audit: AuditRecord });

/**
 * Writes version v + 1, metrics and audit. Run again it trains no second time once the engine's state counts, and writes
 * what is missing of the rest from it: a second training on a GPU may come to other bits.
 */
export async function train({ run, iteration }: TrainInput, services: TrainServices): Promise<void> {
  const { store } = services;
  const phase = iterationPrefix(run, iteration);
  const next = { run, version: iteration + 1 };
  const state =
    (await openEngineState(store, next)) ??
    (await writeEngineState(store, next, await trainVersion({ run, iteration }, services)));
  const { metrics, audit } = parseJson(await state.read(RESULTS_FILE), state.where + RESULTS_FILE, Results);
  await putOnce(store, auditKey(phase), encodeJson(audit));
  await putOnce(store, metricsKey(phase), encodeJson(metrics));
  await writePolicy(store, next, policyOf(store, run, iteration));
}

/** @returns the files of the engine's state after the iteration */
async function trainVersion(
  { run, iteration }: TrainInput,
  services: TrainServices,
): Promise<NamedContent[]> {
  const { store } = services;
  const { config } = await readRun(store, run);
  const phase = iterationPrefix(run, iteration);
  const closed = await readClosed(store, phase);
  const episodes = await loadBatch(store, phase, closed);
  if (episodes.length === 0) {
    throw new InputError({
      what: "no episode of the iteration can be trained on",
      where: phase,
      expected: "at least one with a sampled token",
      fix: "look at its failures in closed.json",
    });
  }
  const folder = await openPolicy(store, { run, version: iteration });
  const policy = await readModel(folder, "language");
  const actor = new Network(await readOptimizer(store, run, iteration, ACTOR_FILE, policy, "language"));
  const layout = config.kind === "sft" ? undefined : routeLayout(policy.config);
  const { policyVersion } = closed;
  const audits = episodes.flatMap(({ recorded }) => auditEpisode(recorded, { layout, policyVersion }));
  const storedCritic =
    config.kind === "sft" ? undefined : await readCritic(store, run, iteration, { folder, model: policy });
  const critic = storedCritic && new Network(storedCritic.state);
  const context = { iteration, services };
  const metrics =
    config.kind === "sft" || critic === undefined
      ? await trainOnDemonstrations(episodes, actor, config as SftConfig, context)
      : await trainByPpo(
          episodes,
          { actor, critic, behaviour: await readBehaviour(store, run, iteration, closed) },
          config,
          context,
        );
  const results = Results.parse({
    metrics: { ...summarise(closed), ...metrics },
    audit: summariseAudits(audits, closed.policyVersion),
  });
  return [
    { path: ACTOR_FILE, body: encodeNetworkState(actor.state, { withParameters: true }) },
    ...(critic && storedCritic ? await criticFiles({ ...storedCritic, state: critic.state }) : []),
    { path: RESULTS_FILE, body: encodeJson(results) },
  ];
}

async function criticFiles({ state, configFile }: StoredCritic): Promise<NamedContent[]> {
  return [
    { path: CRITIC_FILE, body: encodeNetworkState(state, { withParameters: false }) },
    ...(await Array.fromAsync(asCritic(encodeModelFiles(state.parameters, configFile, "float32")))),
  ];
}

/** The policy of the trained state, made when it is asked for. */
async function* policyOf(store: ObjectStore, run: string, iteration: number): AsyncGenerator<NamedContent> {
  const before = await openPolicy(store, { run, version: iteration });
  const model = await readModel(before, "language");
  const trained = await readOptimizer(store, run, iteration + 1, ACTOR_FILE, model, "language");
  yield* encodeModelFiles(trained.parameters, await before.read(CONFIG_FILE), "bfloat16");
  yield* travellingFiles(before);
}

interface Context {
  readonly iteration: number;
  readonly services: TrainServices;
}

async function trainOnDemonstrations(
  episodes: readonly TrainingEpisode[],
  actor: Network,
  { training, rollout, seed }: SftConfig,
  { iteration, services }: Context,
) {
  const good = episodes
    .filter(episode => episode.reward >= training.minReward)
    .flatMap(episode => episode.chunks);
  if (good.length === 0) {
    throw new InputError({
      what: "no demonstration can be trained on",
      expected: `one with reward ${training.minReward}`,
      fix: "lower training.minReward",
    });
  }
  const { learningRate: peak, warmupSteps, finalShare, iterations, ...settings } = training;
  const stepsPerIteration = Math.ceil(rollout.episodes / training.episodesPerStep) * training.passes;
  const schedule = { peak, warmupSteps, finalShare, decaySteps: stepsPerIteration * iterations };
  return {
    sft: await trainSft(
      good,
      actor,
      { ...settings, schedule },
      { ...services, seed: deriveSeed(seed, "train", iteration) },
    ),
  };
}

async function trainByPpo(
  episodes: readonly TrainingEpisode[],
  networks: PpoNetworks,
  { training, sampling, seed: runSeed }: PpoRunConfig,
  { iteration, services: { sessions } }: Context,
) {
  const seed = deriveSeed(runSeed, "train", iteration);
  const batch = training.permuteRewards ? permuteRewards(episodes, seed) : episodes;
  const criticOnly = iteration < training.critic.onlyIterations;
  const settings = {
    ...training,
    temperature: sampling.temperature,
    minibatchCount: training.minibatches,
    actor: { ...training.actor, passes: criticOnly ? 0 : training.actor.passes },
    critic: { ...training.critic, passes: criticOnly ? training.critic.onlyPasses : training.critic.passes },
  };
  return { ppo: await trainPpo(batch, networks, settings, { sessions, seed }) };
}

/** Hands the rewards to other episodes: the control in which nothing can be learned. */
function permuteRewards(episodes: readonly TrainingEpisode[], seed: string): TrainingEpisode[] {
  const rewards = new RandomStream(deriveSeed(seed, "permuted rewards")).shuffle(
    episodes.map(episode => episode.reward),
  );
  return episodes.map((episode, index) => ({ ...episode, reward: rewards[index] }));
}

interface StoredCritic {
  readonly state: NetworkState;
  /** config.json of the critic's folder; a first critic has that of the policy. */
  readonly configFile: Uint8Array;
}

/** With one-step asynchrony the batch was sampled by the version before the one that is trained. */
async function readBehaviour(
  store: ObjectStore,
  run: string,
  iteration: number,
  { policyVersion }: ClosedPhase,
): Promise<Network | undefined> {
  if (policyVersion === iteration) return undefined;
  const policy = await readModel(await openPolicy(store, { run, version: policyVersion }), "language");
  return new Network(await readOptimizer(store, run, policyVersion, ACTOR_FILE, policy, "language"));
}

async function readCritic(
  store: ObjectStore,
  run: string,
  version: number,
  { folder, model }: { readonly folder: FileSet; readonly model: Model },
): Promise<StoredCritic> {
  const files = await openCritic(store, { run, version });
  const first = () => ({
    config: model.config,
    parameters: criticFromActor(model.config, model.parameters),
  });
  const critic = files === undefined ? first() : await readModel(files, "value");
  return {
    state: await readOptimizer(store, run, version, CRITIC_FILE, critic, "value"),
    configFile: await (files ?? folder).read(CONFIG_FILE),
  };
}

/** Version 0 has no optimizer state: training starts with fresh moments there, also after a warm-up. */
async function readOptimizer(
  store: ObjectStore,
  run: string,
  version: number,
  path: string,
  model: Model,
  head: Head,
): Promise<NetworkState> {
  const state = await openEngineState(store, { run, version });
  if (version === 0) return { ...model, moments: new Map(), step: 0 };
  if (state !== undefined) return decodeNetworkState(state.source(path), model, head, state.where + path);
  throw new InputError({
    what: "the engine's state is missing",
    where: enginePrefix(run, version),
    expected: "a folder with manifest.json",
    fix: "start a new run from this version's policy",
  });
}

function summariseAudits(audits: readonly ChunkAudit[], policyVersion: number): AuditRecord {
  const total = (count: (audit: ChunkAudit) => number): number =>
    audits.reduce((sum, audit) => sum + count(audit), 0);
  return {
    policyVersion,
    chunkCount: audits.length,
    receiptCount: total(audit => audit.receiptCount),
    tokenCount: total(audit => audit.tokenCount),
    sampledTokenCount: total(audit => audit.sampledTokenCount),
  };
}

/** Of the episodes themselves, before anything was trained. */
function summarise({ policyVersion, episodes, failed, cancelled }: ClosedPhase) {
  const mean = (value: (episode: ClosedEpisode) => number): number =>
    episodes.reduce((sum, episode) => sum + value(episode), 0) / episodes.length;
  const endReasons: Record<string, number> = {};
  for (const { endReason } of episodes) endReasons[endReason] = (endReasons[endReason] ?? 0) + 1;
  return {
    policyVersion,
    episodes: {
      count: episodes.length,
      failedCount: failed.length,
      cancelledCount: cancelled.length,
      meanReward: mean(episode => episode.reward),
      resolvedRate: mean(episode => Number(episode.resolved)),
      passingShare: mean(({ passed, total }) => (total === 0 ? 0 : passed / total)),
      meanTurns: mean(episode => episode.turnCount),
      meanTokens: mean(episode => episode.tokenCount),
      meanSampledTokens: mean(episode => episode.sampledTokenCount),
      endReasons,
    },
  };
}
