// The record of an attempt (run/records.ts), and the files of its gradings.
import type { Failure } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import { type AttemptPrefix, keptFilesKey, keptIndexKey, verifierPrefix } from "../run/keys.ts";
import type { EpisodeRecord } from "../run/records.ts";
import { encodeJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import type { Task } from "../task/task.ts";
import type { Chunk } from "../trajectory/chunk.ts";
import type { VerifierRun } from "../verifier/run-verifier.ts";
import { combineReports } from "../verifier/step-rewards.ts";
import { joinTampering } from "../verifier/tampering.ts";
import type { AttemptClock, AttemptInput } from "./attempt.ts";
import { modeOf } from "./grade.ts";
import type { PlayedStep } from "./play-steps.ts";

const NO_TIMES = { sandboxStartMs: 0, samplerMs: 0, commandMs: 0, verifierMs: 0 };

/** The record of an attempt that the infrastructure failed: it has no reward. */
export function failureRecord(input: AttemptInput, error: Failure, clock: AttemptClock): EpisodeRecord {
  const { layer, name, retryable, message } = error;
  return {
    ...commonFields(input, clock.startedAt),
    endReason: "failure",
    times: { ...NO_TIMES, totalMs: clock.elapsedMs() },
    failure: { layer, name, retryable, detail: message },
  };
}

/** The record of an attempt that was played. @param played at least one step */
export function outcomeRecord(
  input: AttemptInput,
  played: readonly PlayedStep[],
  {
    startedAt,
    elapsedMs,
    sandboxStartMs,
    arraysSha256,
  }: AttemptClock & { readonly sandboxStartMs: number; readonly arraysSha256: string | undefined },
): EpisodeRecord {
  const last = played[played.length - 1];
  const transcript = played.flatMap(({ outcome }) => outcome.transcript);
  const sampledOf = ({ mask }: Chunk): number => mask.reduce((sum, bit) => sum + bit, 0);
  const total = (count: (chunk: Chunk) => number): number =>
    last.outcome.chunks.reduce((sum, chunk) => sum + count(chunk), 0);
  const sum = (value: (step: PlayedStep) => number): number =>
    played.reduce((all, step) => all + value(step), 0);
  return {
    ...commonFields(input, startedAt),
    endReason: last.graded?.isBrokenByAgent === true ? "agent_error" : last.outcome.endReason,
    turnCount: transcript.filter(({ purpose }) => purpose === undefined).length,
    tokenCount: total(chunk => chunk.tokens.length),
    sampledTokenCount: total(sampledOf),
    times: {
      sandboxStartMs,
      samplerMs: sum(({ outcome }) => outcome.samplerMs),
      commandMs: sum(({ outcome }) => outcome.sandboxMs),
      verifierMs: sum(({ verifierMs }) => verifierMs),
      totalMs: elapsedMs(),
    },
    ...verdictOf(played, input),
    ...(arraysSha256 !== undefined && { arraysSha256 }),
  };
}

/** Writes the files of each grading: the verifier's own, and the agent's where they are kept. */
export function writeGradings(
  store: ObjectStore,
  at: AttemptPrefix,
  played: readonly PlayedStep[],
): readonly Promise<void>[] {
  return played.flatMap(({ graded }, index) => {
    if (graded === undefined) return [];
    const folder = played.length === 1 ? verifierPrefix(at) : `${verifierPrefix(at)}${index}/`;
    const files = [...graded.files].map(([name, bytes]) => putOnce(store, `${folder}${name}`, bytes));
    const { kept } = graded;
    if (kept === undefined || "notKept" in kept) return files;
    const { deleted } = kept;
    return [
      ...files,
      putOnce(store, keptFilesKey(at, index), kept.tar),
      putOnce(store, keptIndexKey(at, index), encodeJson({ format: "t1-kept-files-1", deleted })),
    ];
  });
}

/** The gradings in a record: of the one step, or of all steps together and of each. */
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

/** The metadata of a task that a report can group by. */
function labelsOf({ metadata }: Task): EpisodeRecord["labels"] {
  const labels: EpisodeRecord["labels"] = {};
  for (const [name, value] of Object.entries(metadata)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      labels[name] = value;
    else if (Array.isArray(value) && value.every(item => typeof item === "string")) labels[name] = value;
  }
  return labels;
}
