// One attempt at one episode: a fresh sandbox, the agent, the verifier, and the record, which is written last. Failures
// of the infrastructure are recorded as such; everything that the agent does is an outcome. How the agent plays is in
// play-steps.ts and agent/episode.ts, the content of the record in attempt-record.ts.
import type { RunConfig } from "../config/run-config.ts";
import { Failure } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import {
  arraysKey,
  attemptPrefix,
  episodeKey,
  episodePrefix,
  type PhasePrefix,
  transcriptKey,
} from "../run/keys.ts";
import type { EpisodeRecord, PlannedEpisode } from "../run/records.ts";
import type { PolicyReference, Sampler } from "../sampler/sampler.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import { encodeJson, encodeJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { encodeChunks } from "../trajectory/chunk.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import { failureRecord, outcomeRecord, writeGradings } from "./attempt-record.ts";
import { awaitHealthy } from "./healthcheck.ts";
import { limitsOf, playSteps } from "./play-steps.ts";
import type { PreparedTask } from "./prepare.ts";

export interface AttemptServices {
  readonly store: ObjectStore;
  readonly sandboxes: SandboxProvider;
  readonly chat: ChatFormat;
  readonly tokenizer: Tokenizer;
  /** Answers for one episode: the policy's, or a demonstration's. */
  readonly samplerFor: (prepared: PreparedTask) => Sampler;
  /** Cancels the episode, which then has no reward. */
  readonly signal: AbortSignal;
  /** Ends the driver: an attempt that has not ended counts as not begun. `signal` is aborted with it. */
  readonly interruption: AbortSignal;
}

export interface AttemptInput {
  readonly phase: PhasePrefix;
  readonly planned: PlannedEpisode;
  readonly attempt: number;
  readonly prepared: PreparedTask;
  readonly config: Pick<RunConfig, "agent" | "sampling" | "verifier">;
  readonly policy: PolicyReference;
  /** Undefined for a model without experts. */
  readonly layout: RouteLayout | undefined;
}

/** Time since the attempt began, and when that was. */
export interface AttemptClock {
  readonly startedAt: string;
  readonly elapsedMs: () => number;
}

/** A sandbox outlives every limit of its episode by this much before others may end it. */
const LEASE_SLACK_MS = 3_600_000;

/**
 * @returns the record, as it was written
 * @throws the interruption's reason, and then there is no record
 */
export async function runAttempt(input: AttemptInput, services: AttemptServices): Promise<EpisodeRecord> {
  const begun = performance.now();
  const clock = { startedAt: new Date().toISOString(), elapsedMs: () => performance.now() - begun };
  const record = await playAndGrade(input, services, clock).catch(error => {
    services.interruption.throwIfAborted();
    if (error instanceof Failure) return failureRecord(input, error, clock);
    throw error;
  });
  const at = attemptPrefix(episodePrefix(input.phase, input.planned.episode), input.attempt);
  await putOnce(services.store, episodeKey(at), encodeJson(record));
  return record;
}

/** Makes the sandbox, plays in it, and ends it whatever happens. */
async function playAndGrade(
  input: AttemptInput,
  services: AttemptServices,
  clock: AttemptClock,
): Promise<EpisodeRecord> {
  const { phase, planned, attempt, prepared, config } = input;
  const durations = prepared.steps.map(
    ({ step }) => limitsOf(step, config).timeLimitMs + 4 * step.verifier.timeoutMs,
  );
  const deadlineMs = Date.now() + durations.reduce((sum, ms) => sum + ms, LEASE_SLACK_MS);
  const lease = { id: `${phase.replaceAll("/", ".")}${planned.episode}`, generation: attempt, deadlineMs };
  const sandbox = await services.sandboxes.create(prepared.spec, lease);
  const { interruption } = services;
  // Set-up, health checks and reads of the sandbox take no signal: they end because their sandbox does.
  const end = () => void sandbox[Symbol.asyncDispose]().then(undefined, () => undefined); // it is tried again below
  interruption.addEventListener("abort", end);
  try {
    interruption.throwIfAborted();
    return await playInside(sandbox, input, services, clock);
  } finally {
    interruption.removeEventListener("abort", end);
    await sandbox[Symbol.asyncDispose]();
  }
}

/** Waits for the sandbox's health, plays the task's steps with their gradings, and writes everything but the record. */
async function playInside(
  sandbox: Sandbox,
  input: AttemptInput,
  services: AttemptServices,
  clock: AttemptClock,
): Promise<EpisodeRecord> {
  const { phase, planned, attempt, prepared, layout } = input;
  const { store } = services;
  const { healthcheck } = prepared;
  const unhealthy = healthcheck === undefined ? undefined : await awaitHealthy(sandbox, healthcheck);
  if (unhealthy !== undefined)
    throw new Failure("SandboxUnavailable", `not healthy: ${unhealthy}`, { retryable: true });
  const sandboxStartMs = clock.elapsedMs();
  const played = await playSteps(sandbox, input, services, clock);

  const at = attemptPrefix(episodePrefix(phase, planned.episode), attempt);
  // The conversation runs through all steps, so the last outcome has the chunks of the whole episode.
  const { chunks } = played[played.length - 1].outcome;
  const arrays = chunks.length === 0 ? undefined : encodeChunks(chunks, layout);
  const transcript = played.flatMap(({ outcome }) => outcome.transcript);
  await Promise.all([
    arrays && putOnce(store, arraysKey(at), arrays),
    putOnce(store, transcriptKey(at), encodeJsonLines(transcript)),
    ...writeGradings(store, at, played),
  ]);
  const arraysSha256 = arrays && sha256(arrays);
  return outcomeRecord(input, played, { ...clock, sandboxStartMs, arraysSha256 });
}
