// Trains on a closed iteration: a pure function from the closed list and the state of version v to that of v + 1.
import type { PpoRunConfig, SftConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import {
  CONFIG_FILE,
  decodeModelFiles,
  encodeModelFiles,
  type Files,
  type Model,
  requireFile,
} from "../model/checkpoint.ts";
import { readModelFolder, readStoredFiles, writeStoredFiles } from "../model/model-folder.ts";
import { criticFromActor, type Head } from "../model/parameters.ts";
import { routeLayout } from "../model/routing.ts";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { readClosed } from "../rollout/close.ts";
import {
  auditKey,
  criticPrefix,
  iterationPrefix,
  metricsKey,
  optimizerPrefix,
  policyPrefix,
} from "../run/keys.ts";
import type { ClosedEpisode, ClosedPhase } from "../run/records.ts";
import { readRun } from "../run/run-record.ts";
import { encodeJson } from "../store/json.ts";
import { readFolderFile, readManifest, writeFolder } from "../store/manifest.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import type { TrainingEpisode } from "../training/episode.ts";
import { Network, type NetworkState, type Sessions } from "../training/onnx/network.ts";
import { type PpoNetworks, trainPpo } from "../training/onnx/train-ppo.ts";
import { trainSft } from "../training/onnx/train-sft.ts";
import { decodeNetworkState, encodeNetworkState } from "../training/optimizer-file.ts";
import { auditChunk, type ChunkAudit } from "../trajectory/audit.ts";
import { loadBatch } from "./load-batch.ts";
import { type AuditRecord, IterationMetrics } from "./metrics.ts";

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

/** Writes policy, critic and optimizer v + 1, metrics and audit. Run again it writes the same bytes. */
export async function train({ run, iteration }: TrainInput, services: TrainServices): Promise<void> {
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
  const files = await readStoredFiles(store, policyPrefix(run, iteration));
  const policy = decodeModelFiles(files, "language", policyPrefix(run, iteration));
  const actor = new Network(await readOptimizer(store, run, iteration, ACTOR_FILE, policy, "language"));
  const layout = config.kind === "sft" ? undefined : routeLayout(policy.config);
  const audits = episodes.flatMap(episode => episode.chunks).map(chunk => auditChunk(chunk, layout));
  const configFile = requireFile(files, CONFIG_FILE, policyPrefix(run, iteration));
  const storedCritic =
    config.kind === "sft" ? undefined : await readCritic(store, run, iteration, { ...policy, configFile });
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
  await writeVersion(store, run, iteration + 1, {
    actor: actor.state,
    critic: critic && { state: critic.state, configFile: storedCritic.configFile },
    files,
  });
  await putOnce(store, auditKey(phase), encodeJson(summariseAudits(audits, closed.policyVersion)));
  await putOnce(
    store,
    metricsKey(phase),
    encodeJson(IterationMetrics.parse({ ...summarise(closed), ...metrics })),
  );
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

interface NewVersion {
  readonly actor: NetworkState;
  readonly critic: StoredCritic | undefined;
  /** Of the policy before: tokenizer and template stay. */
  readonly files: Files;
}

/** The policy is written last: where it counts, all that resuming from it needs is there. */
async function writeVersion(
  store: ObjectStore,
  run: string,
  version: number,
  { actor, critic, files }: NewVersion,
): Promise<void> {
  const optimizer = [{ path: ACTOR_FILE, body: encodeNetworkState(actor, { withParameters: true }) }];
  if (critic !== undefined) {
    optimizer.push({ path: CRITIC_FILE, body: encodeNetworkState(critic.state, { withParameters: false }) });
    await writeStoredFiles(
      store,
      criticPrefix(run, version),
      encodeModelFiles(critic.state.parameters, critic.configFile, "float32"),
    );
  }
  await writeFolder(store, optimizerPrefix(run, version), optimizer);
  const kept = [...files].filter(([name]) => name !== CONFIG_FILE && !name.startsWith("model.safetensors"));
  const configFile = requireFile(files, CONFIG_FILE, policyPrefix(run, version - 1));
  await writeStoredFiles(
    store,
    policyPrefix(run, version),
    new Map([...encodeModelFiles(actor.parameters, configFile, "bfloat16"), ...kept]),
  );
}

/** With one-step asynchrony the batch was sampled by the version before the one that is trained. */
async function readBehaviour(
  store: ObjectStore,
  run: string,
  iteration: number,
  { policyVersion }: ClosedPhase,
): Promise<Network | undefined> {
  if (policyVersion === iteration) return undefined;
  const policy = await readModelFolder(store, policyPrefix(run, policyVersion), "language");
  return new Network(await readOptimizer(store, run, policyVersion, ACTOR_FILE, policy, "language"));
}

async function readCritic(
  store: ObjectStore,
  run: string,
  version: number,
  policy: Model & Pick<StoredCritic, "configFile">,
): Promise<StoredCritic> {
  const prefix = criticPrefix(run, version);
  const stored = (await readManifest(store, prefix)) !== undefined;
  const files = stored ? await readStoredFiles(store, prefix) : new Map([[CONFIG_FILE, policy.configFile]]);
  const model = stored
    ? decodeModelFiles(files, "value", prefix)
    : { config: policy.config, parameters: criticFromActor(policy.config, policy.parameters) };
  return {
    state: await readOptimizer(store, run, version, CRITIC_FILE, model, "value"),
    configFile: requireFile(files, CONFIG_FILE, prefix),
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
  const prefix = optimizerPrefix(run, version);
  const manifest = await readManifest(store, prefix);
  if (manifest === undefined) {
    if (version === 0) return { ...model, moments: new Map(), step: 0 };
    throw new InputError({
      what: "the optimizer state is missing",
      where: prefix,
      expected: "a folder with manifest.json",
      fix: "start a new run from this version's policy",
    });
  }
  return decodeNetworkState(
    await readFolderFile(store, prefix, manifest, path),
    model,
    head,
    `${prefix}${path}`,
  );
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
