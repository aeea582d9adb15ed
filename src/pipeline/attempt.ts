// One attempt at one episode: a fresh sandbox, the agent, the verifier, and the record, which is written last. Failures
// of the infrastructure are recorded as such; whatever the agent does is an outcome.
import type { EpisodeLimits } from "../agent/episode.ts";
import { runEpisode } from "../agent/episode.ts";
import { findProtocol } from "../agent/find-protocol.ts";
import type { RunConfig } from "../config/run-config.ts";
import { Failure } from "../failure/errors.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import type { PolicyReference, Sampler } from "../sampler/sampler.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import { encodeJson, encodeJsonLines } from "../store/json.ts";
import {
  arraysKey,
  attemptPrefix,
  episodeKey,
  episodePrefix,
  type PhasePrefix,
  transcriptKey,
  verifierPrefix,
} from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { sha256 } from "../store/sha256.ts";
import { putOnce } from "../store/write-once.ts";
import type { Task } from "../task/task.ts";
import { type Chunk, encodeChunks } from "../trajectory/chunk.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import { runVerifier } from "../verifier/run-verifier.ts";
import { awaitHealthy } from "./healthcheck.ts";
import { inPhase } from "./phase-network.ts";
import type { PreparedTask } from "./prepare.ts";
import type { EpisodeRecord, PlannedEpisode } from "./records.ts";

export interface AttemptServices {
  readonly store: ObjectStore;
  readonly sandboxes: SandboxProvider;
  readonly chat: ChatFormat;
  readonly tokenizer: Tokenizer;
  /** Answers for one episode: the policy's, or a demonstration's. */
  readonly samplerFor: (prepared: PreparedTask) => Sampler;
  readonly signal?: AbortSignal;
}

export interface AttemptInput {
  readonly phase: PhasePrefix;
  readonly planned: PlannedEpisode;
  readonly attempt: number;
  readonly prepared: PreparedTask;
  readonly config: Pick<RunConfig, "agent" | "sampling">;
  readonly policy: PolicyReference;
  readonly layout: RouteLayout;
}

/** A sandbox outlives every limit of its episode by this much before others may end it. */
const LEASE_SLACK_MS = 3_600_000;

/** @returns the record, as it was written */
export async function runAttempt(input: AttemptInput, services: AttemptServices): Promise<EpisodeRecord> {
  const startedAt = new Date();
  const begun = performance.now();
  const clock = { startedAt: startedAt.toISOString(), elapsedMs: () => performance.now() - begun };
  let record: EpisodeRecord;
  try {
    record = await playAndGrade(input, services, clock);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const failure = {
      layer: error.layer,
      name: error.name,
      retryable: error.retryable,
      detail: error.message,
    };
    record = {
      ...commonFields(input, clock.startedAt),
      endReason: "failure",
      times: { ...NO_TIMES, totalMs: clock.elapsedMs() },
      failure,
    };
  }
  const at = attemptPrefix(episodePrefix(input.phase, input.planned.episode), input.attempt);
  await putOnce(services.store, episodeKey(at), encodeJson(record));
  return record;
}

const NO_TIMES = { sandboxStartMs: 0, samplerMs: 0, commandMs: 0, verifierMs: 0 };

interface Clock {
  readonly startedAt: string;
  readonly elapsedMs: () => number;
}

async function playAndGrade(
  input: AttemptInput,
  services: AttemptServices,
  clock: Clock,
): Promise<EpisodeRecord> {
  const { phase, planned, attempt, prepared } = input;
  const { timeLimitMs } = limitsOf(prepared, input.config);
  const deadlineMs = Date.now() + timeLimitMs + 4 * prepared.step.verifier.timeoutMs + LEASE_SLACK_MS;
  const lease = { id: `${phase.replaceAll("/", ".")}${planned.episode}`, generation: attempt, deadlineMs };
  const sandbox = await services.sandboxes.create(prepared.spec, lease);
  try {
    return await playInside(sandbox, input, services, clock);
  } finally {
    await sandbox[Symbol.asyncDispose]();
  }
}

async function playInside(
  sandbox: Sandbox,
  input: AttemptInput,
  services: AttemptServices,
  clock: Clock,
): Promise<EpisodeRecord> {
  const { phase, planned, attempt, prepared, config, policy, layout } = input;
  const { step, tests, verifierEnv, networks, healthcheck } = prepared;
  const unhealthy = healthcheck === undefined ? undefined : await awaitHealthy(sandbox, healthcheck);
  if (unhealthy !== undefined)
    throw new Failure("SandboxUnavailable", `not healthy: ${unhealthy}`, { retryable: true });
  const { chat, tokenizer, signal } = services;
  const sandboxStartMs = clock.elapsedMs();
  const setup = {
    instruction: step.instruction,
    protocol: findProtocol(config.agent),
    summary: config.agent.summary,
    limits: limitsOf(prepared, config),
    chat,
    tokenizer,
    sampling: config.sampling,
    policy,
    layout,
    seed: planned.seed,
    signal,
  };
  const outcome = await runEpisode(setup, {
    sampler: services.samplerFor(prepared),
    sandbox: inPhase(sandbox, networks.agent),
  });
  const gradedFrom = clock.elapsedMs();
  const graded =
    outcome.endReason === "cancelled"
      ? undefined
      : await runVerifier(inPhase(sandbox, networks.verifier), {
          tests,
          env: verifierEnv,
          timeoutMs: step.verifier.timeoutMs,
        });
  const verifierMs = clock.elapsedMs() - gradedFrom;

  const at = attemptPrefix(episodePrefix(phase, planned.episode), attempt);
  const arrays = outcome.chunks.length === 0 ? undefined : encodeChunks(outcome.chunks, layout);
  await Promise.all([
    arrays && putOnce(services.store, arraysKey(at), arrays),
    putOnce(services.store, transcriptKey(at), encodeJsonLines(outcome.transcript)),
    ...[...(graded?.files ?? [])].map(([name, bytes]) =>
      putOnce(services.store, `${verifierPrefix(at)}${name}`, bytes),
    ),
  ]);
  const ones = (mask: Uint8Array): number => mask.reduce((sum, bit) => sum + bit, 0);
  const total = (count: (chunk: Chunk) => number): number =>
    outcome.chunks.reduce((sum, chunk) => sum + count(chunk), 0);
  return {
    ...commonFields(input, clock.startedAt),
    endReason: outcome.endReason,
    turnCount: outcome.transcript.filter(({ purpose }) => purpose === undefined).length,
    tokenCount: total(chunk => chunk.tokens.length),
    sampledTokenCount: total(chunk => ones(chunk.mask)),
    times: {
      sandboxStartMs,
      samplerMs: outcome.samplerMs,
      commandMs: outcome.sandboxMs,
      verifierMs,
      totalMs: clock.elapsedMs(),
    },
    ...(graded !== undefined && { report: graded.report }),
    ...(arrays !== undefined && { arraysSha256: sha256(arrays) }),
  };
}

function commonFields(
  { planned: { episode, task, taskHash }, attempt, prepared, policy }: AttemptInput,
  startedAt: string,
) {
  const identity = { format: "t1-episode-1" as const, episode, attempt, task, taskHash };
  const counts = { turnCount: 0, tokenCount: 0, sampledTokenCount: 0 };
  return {
    ...identity,
    ...counts,
    labels: labelsOf(prepared.task),
    policyVersion: policy.version,
    startedAt,
  };
}

/** What a task says of itself that a report can group by. */
function labelsOf({ metadata }: Task): EpisodeRecord["labels"] {
  const labels: EpisodeRecord["labels"] = {};
  for (const [name, value] of Object.entries(metadata)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      labels[name] = value;
    else if (Array.isArray(value) && value.every(item => typeof item === "string")) labels[name] = value;
  }
  return labels;
}

function limitsOf({ step }: PreparedTask, { agent }: Pick<RunConfig, "agent">): EpisodeLimits {
  const configured =
    agent.episodeSeconds === undefined ? Number.POSITIVE_INFINITY : agent.episodeSeconds * 1000;
  const ownMs = step.agent.timeoutMs ?? configured;
  return {
    turns: agent.turns,
    answerTokens: agent.answerTokens,
    contextTokens: agent.contextTokens,
    observationTokens: agent.observationTokens,
    commandTimeoutMs: agent.commandSeconds * 1000,
    timeLimitMs: Number.isFinite(ownMs) ? ownMs : DEFAULT_EPISODE_MS,
    outputBytes: agent.outputBytes,
  };
}

/** Where neither the task nor the run sets a time: T1's agent deadline. */
const DEFAULT_EPISODE_MS = 3_600_000;
