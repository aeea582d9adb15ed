// The steps of a task, played and graded one after the other in one sandbox.
import { type EpisodeLimits, type EpisodeOutcome, type EpisodeSetup, runEpisode } from "../agent/episode.ts";
import { findProtocol } from "../agent/find-protocol.ts";
import type { RunConfig } from "../config/run-config.ts";
import { Failure, InputError, InvariantError } from "../failure/errors.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Task, TaskStep } from "../task/task.ts";
import type { VerifierRun } from "../verifier/run-verifier.ts";
import { passesGate } from "../verifier/step-rewards.ts";
import type { AttemptClock, AttemptInput, AttemptServices } from "./attempt.ts";
import { gradeStep } from "./grade.ts";
import { inPhase } from "./phase-network.ts";
import type { PreparedStep } from "./prepare-steps.ts";
import { setUpStep } from "./set-up-step.ts";

/** Limit of time where neither the task nor the run sets one: T1's agent deadline. */
const DEFAULT_EPISODE_MS = 3_600_000;

/** A step of a task as it was played. */
export interface PlayedStep {
  readonly step: PreparedStep;
  readonly outcome: EpisodeOutcome;
  /** Undefined when the episode was cancelled. */
  readonly graded: VerifierRun | undefined;
  readonly verifierMs: number;
}

/**
 * Plays the steps of a task, of which most have one. Each is graded before the next begins; the agent goes on in the same
 * sandbox and the same conversation.
 *
 * @returns the steps that were played, at least one
 */
export async function playSteps(
  sandbox: Sandbox,
  input: AttemptInput,
  services: AttemptServices,
  clock: AttemptClock,
): Promise<readonly PlayedStep[]> {
  const { planned, prepared, config, policy, layout } = input;
  const { chat, tokenizer, signal } = services;
  const sampler = services.samplerFor(prepared);
  const played: PlayedStep[] = [];
  let continued: EpisodeSetup["continued"];
  for (const [index, step] of prepared.steps.entries()) {
    const problem = await setUpStep(sandbox, step, prepared.spec.workdir);
    // In a later step the agent can have caused it, so the gradings so far count.
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
    // The driver is ending, so another one plays the episode again. The straggler rule aborts `signal` alone.
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
  if (played.length === 0) throw new InvariantError("a task has a step", { task: planned.task });
  return played;
}

/**
 * An episode whose policy was never asked is no result: its tests say nothing of the policy
 * (NVIDIA-NeMo/nemo-platform PR#1295).
 */
function assertStarted({ endReason, transcript, continuation }: EpisodeOutcome): void {
  if (endReason === "cancelled" || transcript.length > 0 || continuation.turnCount > 0) return;
  const isTooLong = endReason === "context_limit";
  const why = isTooLong
    ? "its first prompt leaves no room for an answer; start a run with more agent.contextTokens, or leave the task out"
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

/** Limits of an episode: those of the run, and the time that the step sets for its agent. */
export function limitsOf(step: TaskStep, { agent }: Pick<RunConfig, "agent">): EpisodeLimits {
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
