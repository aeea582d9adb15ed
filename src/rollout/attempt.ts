// One attempt at one episode: a fresh sandbox, the agent, the verifier, and the record, which is written last. Failures
// of the infrastructure are recorded as such; whatever the agent does is an outcome.
import { type EpisodeLimits, type EpisodeOutcome, type EpisodeSetup, runEpisode } from "../agent/episode.ts";
import { findProtocol } from "../agent/find-protocol.ts";
import type { RunConfig } from "../config/run-config.ts";
import { Failure, InputError, InvariantError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import {
  type AttemptPrefix,
  arraysKey,
  attemptPrefix,
  episodeKey,
  episodePrefix,
  keptFilesKey,
  keptIndexKey,
  type PhasePrefix,
  transcriptKey,
  verifierPrefix,
} from "../run/keys.ts";
import type { EpisodeRecord, PlannedEpisode } from "../run/records.ts";
import type { PolicyReference, Sampler } from "../sampler/sampler.ts";
import type { Sandbox, SandboxProvider } from "../sandbox/sandbox.ts";
import { encodeJson, encodeJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import type { Task, TaskStep } from "../task/task.ts";
import { type Chunk, encodeChunks } from "../trajectory/chunk.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import type { VerifierRun } from "../verifier/run-verifier.ts";
import { combineReports, passesGate } from "../verifier/step-rewards.ts";
import { joinTampering } from "../verifier/tampering.ts";
import { gradeStep, modeOf } from "./grade.ts";
import { awaitHealthy } from "./healthcheck.ts";
import { inPhase } from "./phase-network.ts";
import type { PreparedTask } from "./prepare.ts";
import type { PreparedStep } from "./prepare-steps.ts";
import { setUpStep } from "./set-up-step.ts";

export interface AttemptServices {
  readonly store: ObjectStore;
  readonly sandboxes: SandboxProvider;
  readonly chat: ChatFormat;
  readonly tokenizer: Tokenizer;
  /** Answers for one episode: the policy's, or a demonstration's. */
  readonly samplerFor: (prepared: PreparedTask) => Sampler;
  /** Cancels the episode, which then has no reward. */
  readonly signal: AbortSignal;
  /** Ends whoever plays it: an attempt that has not ended counts as not begun. `signal` is told of it too. */
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

/** A sandbox outlives every limit of its episode by this much before others may end it. */
const LEASE_SLACK_MS = 3_600_000;

/**
 * @returns the record, as it was written
 * @throws the interruption's reason, and then there is no record
 */
export async function runAttempt(input: AttemptInput, services: AttemptServices): Promise<EpisodeRecord> {
  const startedAt = new Date();
  const begun = performance.now();
  const clock = { startedAt: startedAt.toISOString(), elapsedMs: () => performance.now() - begun };
  let record: EpisodeRecord;
  try {
    record = await playAndGrade(input, services, clock);
  } catch (error) {
    services.interruption.throwIfAborted();
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
  const { phase, planned, attempt, prepared, config } = input;
  const durations = prepared.steps.map(
    ({ step }) => limitsOf(step, config).timeLimitMs + 4 * step.verifier.timeoutMs,
  );
  const deadlineMs = Date.now() + durations.reduce((sum, ms) => sum + ms, LEASE_SLACK_MS);
  const lease = { id: `${phase.replaceAll("/", ".")}${planned.episode}`, generation: attempt, deadlineMs };
  const sandbox = await services.sandboxes.create(prepared.spec, lease);
  const { interruption } = services;
  // Set-up, health checks and what is read of a sandbox hear of it in no other way.
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

interface PlayedStep {
  readonly step: PreparedStep;
  readonly outcome: EpisodeOutcome;
  /** undefined when it was cancelled */
  readonly graded: VerifierRun | undefined;
  readonly verifierMs: number;
}

async function playInside(
  sandbox: Sandbox,
  input: AttemptInput,
  services: AttemptServices,
  clock: Clock,
): Promise<EpisodeRecord> {
  const { phase, planned, attempt, prepared, layout } = input;
  const { healthcheck } = prepared;
  const unhealthy = healthcheck === undefined ? undefined : await awaitHealthy(sandbox, healthcheck);
  if (unhealthy !== undefined)
    throw new Failure("SandboxUnavailable", `not healthy: ${unhealthy}`, { retryable: true });
  const sandboxStartMs = clock.elapsedMs();
  const played = await playSteps(sandbox, input, services, clock);
  const last = played.at(-1);
  if (last === undefined) throw new InvariantError("a task has a step", { task: planned.task });

  const at = attemptPrefix(episodePrefix(phase, planned.episode), attempt);
  const { chunks } = last.outcome;
  const transcript = played.flatMap(({ outcome }) => outcome.transcript);
  const arrays = chunks.length === 0 ? undefined : encodeChunks(chunks, layout);
  await Promise.all([
    arrays && putOnce(services.store, arraysKey(at), arrays),
    putOnce(services.store, transcriptKey(at), encodeJsonLines(transcript)),
    ...played.flatMap(({ graded }, index) => verifierFiles(services.store, at, graded, index, played.length)),
  ]);
  const ones = (mask: Uint8Array): number => mask.reduce((sum, bit) => sum + bit, 0);
  const total = (count: (chunk: Chunk) => number): number =>
    chunks.reduce((sum, chunk) => sum + count(chunk), 0);
  const sum = (value: (step: PlayedStep) => number): number =>
    played.reduce((all, step) => all + value(step), 0);
  return {
    ...commonFields(input, clock.startedAt),
    endReason: last.graded?.isBrokenByAgent === true ? "agent_error" : last.outcome.endReason,
    turnCount: transcript.filter(({ purpose }) => purpose === undefined).length,
    tokenCount: total(chunk => chunk.tokens.length),
    sampledTokenCount: total(chunk => ones(chunk.mask)),
    times: {
      sandboxStartMs,
      samplerMs: sum(({ outcome }) => outcome.samplerMs),
      commandMs: sum(({ outcome }) => outcome.sandboxMs),
      verifierMs: sum(({ verifierMs }) => verifierMs),
      totalMs: clock.elapsedMs(),
    },
    ...verdictOf(played, input),
    ...(arrays !== undefined && { arraysSha256: sha256(arrays) }),
  };
}

/** Each step is graded before the next begins; the agent goes on in the same sandbox and the same conversation. */
async function playSteps(
  sandbox: Sandbox,
  input: AttemptInput,
  services: AttemptServices,
  clock: Clock,
): Promise<readonly PlayedStep[]> {
  const { planned, prepared, config, policy, layout } = input;
  const { chat, tokenizer, signal } = services;
  const sampler = services.samplerFor(prepared);
  const played: PlayedStep[] = [];
  let continued: EpisodeSetup["continued"];
  for (const [index, step] of prepared.steps.entries()) {
    const problem = await setUpStep(sandbox, step, prepared.spec.workdir);
    // Later the agent can have caused it: what was graded so far counts.
    if (problem !== undefined && played.length > 0) return played;
    if (problem !== undefined) throw setupFailed(prepared.task, problem);
    const setup = {
      instruction: step.step.instruction,
      protocol: findProtocol(config.agent),
      summary: config.agent.summary,
      limits: limitsOf(step.step, config),
      ...{ chat, tokenizer, sampling: config.sampling, policy, layout, seed: planned.seed, signal },
      ...(continued !== undefined && { continued }),
    };
    const outcome = await runEpisode(setup, { sampler, sandbox: inPhase(sandbox, step.networks.agent) });
    // Not the straggler rule: what played the episode was ended, and another one plays it again.
    services.interruption.throwIfAborted();
    assertStarted(outcome);
    const gradedFrom = clock.elapsedMs();
    const graded =
      outcome.endReason === "cancelled"
        ? undefined
        : await gradeStep(sandbox, { prepared, index, ...config.verifier }, services);
    played.push({ step, outcome, graded, verifierMs: clock.elapsedMs() - gradedFrom });
    // A conversation can only go on after an answer that ended.
    if (graded === undefined || outcome.endReason !== "completed") return played;
    if (graded.isBrokenByAgent || !passesGate(graded.report, step.step.minReward)) return played;
    continued = outcome.continuation;
  }
  return played;
}

/**
 * What the tests find where the policy was never asked says nothing of it, and is no result
 * (NVIDIA-NeMo/nemo-platform PR#1295).
 */
function assertStarted({ endReason, transcript, continuation }: EpisodeOutcome): void {
  if (endReason === "cancelled" || transcript.length > 0 || continuation.turnCount > 0) return;
  const isTooLong = endReason === "context_limit";
  const why = isTooLong
    ? "its first prompt leaves no room for an answer; raise agent.contextTokens or leave the task out"
    : `its sandbox could not be used (${endReason})`;
  throw new Failure("AgentNotStarted", `the policy was never asked: ${why}`, { retryable: !isTooLong });
}

function setupFailed({ folder }: Task, problem: string): InputError {
  return new InputError({
    what: "the first step of the task cannot be set up",
    where: folder,
    expected: `its workdir/ in place and its setup.sh at exit code 0, got ${problem}`,
    fix: "repair the task, or leave it out of the pool",
  });
}

function verifierFiles(
  store: ObjectStore,
  at: AttemptPrefix,
  graded: VerifierRun | undefined,
  index: number,
  stepCount: number,
): readonly Promise<void>[] {
  if (graded === undefined) return [];
  const folder = stepCount === 1 ? verifierPrefix(at) : `${verifierPrefix(at)}${index}/`;
  const files = [...graded.files].map(([name, bytes]) => putOnce(store, `${folder}${name}`, bytes));
  const { kept } = graded;
  if (kept === undefined || "notKept" in kept) return files;
  const { deleted } = kept;
  return [
    ...files,
    putOnce(store, keptFilesKey(at, index), kept.tar),
    putOnce(store, keptIndexKey(at, index), encodeJson({ format: "t1-kept-files-1", deleted })),
  ];
}

/** What a record says of the grading: of one step, or of all together and of each. */
function verdictOf(
  played: readonly PlayedStep[],
  { prepared, config }: AttemptInput,
): Pick<EpisodeRecord, "report" | "verifier" | "steps" | "tampering"> {
  const steps = played.flatMap(({ step: { step }, outcome, graded }, index) =>
    graded === undefined
      ? []
      : [
          {
            name: step.name ?? `${index}`,
            endReason: outcome.endReason,
            report: graded.report,
            ...(graded.tampering !== undefined && { tampering: graded.tampering }),
            ...(graded.kept !== undefined && { kept: describeKept(graded.kept) }),
          },
        ],
  );
  const report = combineReports(steps, prepared.task.config.rewardStrategy);
  // A cancelled episode has no reward, however far it came.
  if (report === undefined || played.at(-1)?.graded === undefined) return {};
  const tampering = joinTampering(steps.flatMap(step => step.tampering ?? []));
  const [first] = steps;
  const isOne = prepared.steps.length === 1 && first !== undefined;
  return {
    report,
    verifier: {
      mode: modeOf(prepared.steps[0], config.verifier.mode),
      ...(isOne && first.kept !== undefined && { kept: first.kept }),
    },
    ...(tampering !== undefined && { tampering }),
    ...(!isOne && { steps: { strategy: prepared.task.config.rewardStrategy, list: steps } }),
  };
}

function describeKept(kept: NonNullable<VerifierRun["kept"]>) {
  if ("notKept" in kept) return { notKept: kept.notKept };
  return { sha256: sha256(kept.tar), sizeBytes: kept.tar.length };
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

function limitsOf(step: TaskStep, { agent }: Pick<RunConfig, "agent">): EpisodeLimits {
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
