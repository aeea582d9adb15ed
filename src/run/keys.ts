// Where everything lies in a store (docs/architecture.md, "Store layout"). An evaluation has the shape of an iteration,
// so both are a phase, and what lies in a phase takes its prefix. Prefixes end in a slash. Numbers have six digits, so
// that the order of keys is the order of numbers.

import { InputError, InvariantError } from "../failure/errors.ts";
import { LAST_NUMBER } from "../settings/numbers.ts";

type RunPrefix = `runs/${string}/`;
export type PhasePrefix = `${RunPrefix}iterations/${string}/` | `${RunPrefix}evaluations/${string}/`;
export type EpisodePrefix = `${PhasePrefix}episodes/${string}/`;
export type AttemptPrefix = `${EpisodePrefix}attempt-${string}/`;

/** What a phase prefix stands for. */
export type Phase =
  | { readonly kind: "iteration"; readonly run: string; readonly iteration: number }
  | { readonly kind: "evaluation"; readonly run: string; readonly name: string };

export interface AttemptId {
  readonly phase: Phase;
  readonly episode: number;
  readonly attempt: number;
}

const DIGITS = `${LAST_NUMBER}`.length;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @throws InputError for a name that cannot be a folder, a bucket key and a part of AWS resource names alike */
function assertName(kind: "run" | "evaluation", name: string): void {
  if (NAME.test(name) && !name.endsWith(".")) return;
  throw new InputError({
    what: `invalid name of ${kind === "run" ? "a run" : "an evaluation"}`,
    where: JSON.stringify(name.slice(0, 100)),
    expected:
      "expected 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit",
    fix: "choose another name, e.g. qwen3-fix-perms.2",
  });
}

/** Everything of a run lies below. */
export function runPrefix(run: string): RunPrefix {
  assertName("run", run);
  return `runs/${run}/`;
}

export function runKey(run: string): string {
  return `${runPrefix(run)}run.json`;
}

export function ownerKey(run: string): string {
  return `${runPrefix(run)}owner.json`;
}

export function stateKey(run: string): string {
  return `${runPrefix(run)}state.json`;
}

/** Of all versions that the run keeps. */
export function policiesPrefix(run: string): string {
  return `${runPrefix(run)}policies/`;
}

export function policyPrefix(run: string, version: number): string {
  return `${policiesPrefix(run)}${padded("policy version", version)}/`;
}

/** State of the training engine: all that it needs beside the policy to go on from this version. */
export function enginePrefix(run: string, version: number): string {
  return `${runPrefix(run)}engine/${padded("engine version", version)}/`;
}

export function iterationPrefix(run: string, iteration: number): PhasePrefix {
  return `${runPrefix(run)}iterations/${padded("iteration", iteration)}/`;
}

export function evaluationPrefix(run: string, name: string): PhasePrefix {
  assertName("evaluation", name);
  return `${runPrefix(run)}evaluations/${name}/`;
}

export function planKey(phase: PhasePrefix): string {
  return `${phase}plan.jsonl`;
}

/** The admitted attempts with hashes: the input of everything after the rollout. */
export function closedKey(phase: PhasePrefix): string {
  return `${phase}closed.json`;
}

/** Wall time of each stage; apart from the metrics, which are a function of the closed list alone. */
export function timingsKey(phase: PhasePrefix): string {
  return `${phase}timings.json`;
}

/** Rates and intervals of an evaluation. */
export function summaryKey(phase: PhasePrefix): string {
  return `${phase}summary.json`;
}

export function metricsKey(phase: PhasePrefix): string {
  return `${phase}metrics.json`;
}

export function auditKey(phase: PhasePrefix): string {
  return `${phase}audit.json`;
}

/** @param episode number of the episode in its phase, from 0 */
export function episodePrefix(phase: PhasePrefix, episode: number): EpisodePrefix {
  return `${phase}episodes/${padded("episode", episode)}/`;
}

/** Which attempt counts. */
export function admittedKey(episode: EpisodePrefix): string {
  return `${episode}admitted.json`;
}

/** @param attempt number of the attempt, from 1 */
export function attemptPrefix(episode: EpisodePrefix, attempt: number): AttemptPrefix {
  if (attempt === 0) throw new InvariantError("attempts are counted from 1", { episode, attempt });
  return `${episode}attempt-${padded("attempt", attempt)}/`;
}

export function claimKey(attempt: AttemptPrefix): string {
  return `${attempt}claim.json`;
}

/** Written last: an attempt without it did not happen. */
export function episodeKey(attempt: AttemptPrefix): string {
  return `${attempt}episode.json`;
}

export function arraysKey(attempt: AttemptPrefix): string {
  return `${attempt}arrays.safetensors`;
}

export function transcriptKey(attempt: AttemptPrefix): string {
  return `${attempt}transcript.jsonl`;
}

/** Raw report files of the verifier lie below. */
export function verifierPrefix(attempt: AttemptPrefix): string {
  return `${attempt}verifier/`;
}

/** What the agent left at the end of a step, for grading it again: its changed files, and beside them what it deleted. */
export function keptFilesKey(attempt: AttemptPrefix, step: number): string {
  return `${attempt}files/${step}.tar`;
}

export function keptIndexKey(attempt: AttemptPrefix, step: number): string {
  return `${attempt}files/${step}.json`;
}

/** @param configHash hexadecimal hash of the reward config, so that a run can be scored again beside its first scores */
export function rewardKey(attempt: AttemptPrefix, configHash: string): string {
  if (!/^[0-9a-f]{8,64}$/.test(configHash))
    throw new InvariantError("a reward lies under a hexadecimal hash", { attempt, configHash });
  return `${attempt}rewards/${configHash}.json`;
}

/** @throws InputError when the text is no phase prefix */
export function parsePhase(prefix: string): Phase {
  const match = /^runs\/([^/]+)\/(?:iterations\/(\d{6})|evaluations\/([^/]+))\/$/.exec(prefix);
  const [, run, iteration, name] = match ?? [];
  if (run === undefined) throw notOfLayout("an iteration or evaluation", prefix);
  assertName("run", run);
  if (name === undefined) return { kind: "iteration", run, iteration: Number(iteration) };
  assertName("evaluation", name);
  return { kind: "evaluation", run, name };
}

/** Which attempt a key or prefix lies in. @throws InputError when it lies in none */
export function parseAttempt(key: string): AttemptId {
  const match = /^(.+\/)episodes\/(\d{6})\/attempt-(\d{6})\//.exec(key);
  const [, phase, episode, attempt] = match ?? [];
  if (phase === undefined || Number(attempt) === 0) throw notOfLayout("an attempt", key);
  return { phase: parsePhase(phase), episode: Number(episode), attempt: Number(attempt) };
}

function padded(kind: string, number: number): string {
  if (!Number.isSafeInteger(number) || number < 0 || number > LAST_NUMBER)
    throw new InvariantError(`a number of the store layout is an integer of at most ${DIGITS} digits`, {
      kind,
      number,
    });
  return String(number).padStart(DIGITS, "0");
}

function notOfLayout(kind: string, key: string): InputError {
  return new InputError({
    what: "key of another kind",
    where: JSON.stringify(key.slice(0, 200)),
    expected: `expected the key of ${kind}`,
  });
}
