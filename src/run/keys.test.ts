import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { InputError, InvariantError } from "../failure/errors.ts";
import { manifestKey } from "../store/manifest.ts";
import { assertKey } from "../store/object-key.ts";
import {
  admittedKey,
  arraysKey,
  attemptPrefix,
  auditKey,
  claimKey,
  closedKey,
  enginePrefix,
  episodeKey,
  episodePrefix,
  evaluationPrefix,
  iterationPrefix,
  metricsKey,
  ownerKey,
  parseAttempt,
  parsePhase,
  planKey,
  policyPrefix,
  rewardKey,
  runKey,
  stateKey,
  transcriptKey,
  verifierPrefix,
} from "./keys.ts";

const phase = iterationPrefix("demo", 42);
const episode = episodePrefix(phase, 17);
const attempt = attemptPrefix(episode, 2);

describe("store layout", () => {
  // docs/architecture.md, "Store layout"
  it.each([
    [runKey("demo"), "runs/demo/run.json"],
    [ownerKey("demo"), "runs/demo/owner.json"],
    [stateKey("demo"), "runs/demo/state.json"],
    [policyPrefix("demo", 42), "runs/demo/policies/000042/"],
    [enginePrefix("demo", 42), "runs/demo/engine/000042/"],
    [manifestKey(policyPrefix("demo", 0)), "runs/demo/policies/000000/manifest.json"],
    [planKey(phase), "runs/demo/iterations/000042/plan.jsonl"],
    [closedKey(phase), "runs/demo/iterations/000042/closed.json"],
    [metricsKey(phase), "runs/demo/iterations/000042/metrics.json"],
    [auditKey(phase), "runs/demo/iterations/000042/audit.json"],
    [admittedKey(episode), "runs/demo/iterations/000042/episodes/000017/admitted.json"],
    [claimKey(attempt), "runs/demo/iterations/000042/episodes/000017/attempt-000002/claim.json"],
    [episodeKey(attempt), "runs/demo/iterations/000042/episodes/000017/attempt-000002/episode.json"],
    [arraysKey(attempt), "runs/demo/iterations/000042/episodes/000017/attempt-000002/arrays.safetensors"],
    [transcriptKey(attempt), "runs/demo/iterations/000042/episodes/000017/attempt-000002/transcript.jsonl"],
    [verifierPrefix(attempt), "runs/demo/iterations/000042/episodes/000017/attempt-000002/verifier/"],
    [
      rewardKey(attempt, "0123abcd"),
      "runs/demo/iterations/000042/episodes/000017/attempt-000002/rewards/0123abcd.json",
    ],
    [planKey(evaluationPrefix("demo", "pass4")), "runs/demo/evaluations/pass4/plan.jsonl"],
    [
      admittedKey(episodePrefix(evaluationPrefix("demo", "pass4"), 3)),
      "runs/demo/evaluations/pass4/episodes/000003/admitted.json",
    ],
  ])("has %s", (key, expected) => {
    expect(key).toBe(expected);
  });

  it("refuses names that are not names", () => {
    for (const name of ["", ".", "..", ".a", "a/b", "a b", "-a", "a.", "ä", "a\n", "x".repeat(65)]) {
      expect(() => runKey(name), name).toThrow(InputError);
      expect(() => evaluationPrefix("demo", name), name).toThrow(InputError);
    }
    for (const name of ["a", "Qwen3-0.6B_v2", "2026-01-01", "x".repeat(64)]) assertKey(runKey(name));
  });

  it("refuses numbers that would break the order of keys", () => {
    for (const number of [-1, 1.5, Number.NaN, 1_000_000])
      for (const prefix of [policyPrefix, enginePrefix, iterationPrefix])
        expect(() => prefix("demo", number)).toThrow(InvariantError);
    expect(() => attemptPrefix(episode, 0)).toThrow("attempts are counted from 1");
    expect(() => rewardKey(attempt, "../x")).toThrow(InvariantError);
    expect(() => manifestKey("runs/demo")).toThrow(InvariantError);
  });

  it("reads ids back from keys", () => {
    const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,20}[a-z]$/);
    const number = fc.integer({ min: 0, max: 999_999 });
    fc.assert(
      fc.property(name, name, number, number, number, (run, evaluation, iteration, episode, attempt) => {
        const phases = [
          [iterationPrefix(run, iteration), { kind: "iteration", run, iteration }],
          [evaluationPrefix(run, evaluation), { kind: "evaluation", run, name: evaluation }],
        ] as const;
        for (const [prefix, phase] of phases) {
          expect(parsePhase(prefix)).toEqual(phase);
          const folder = attemptPrefix(episodePrefix(prefix, episode), attempt + (attempt === 0 ? 1 : 0));
          const ids = { phase, episode, attempt: Math.max(attempt, 1) };
          for (const key of [folder, episodeKey(folder), rewardKey(folder, "0".repeat(64))])
            expect(parseAttempt(key)).toEqual(ids);
        }
      }),
    );
  });

  it("reads no ids from keys of another kind", () => {
    for (const text of [
      "",
      runKey("demo"),
      planKey(phase),
      admittedKey(episode),
      attempt.replace("000002", "2"),
      attempt.replace("000002", "000000"),
      attempt.replace("runs/", ""),
      `x/${attempt}`,
    ])
      expect(() => parseAttempt(text), text).toThrow("key of another kind");
    for (const text of [
      "",
      "runs/demo/",
      planKey(phase),
      "runs/demo/iterations/42/",
      "runs/a/b/iterations/000042/",
    ])
      expect(() => parsePhase(text), text).toThrow("key of another kind");
  });
});
