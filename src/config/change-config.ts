// Which settings may change in a run, and a run's config with some of them changed. Everything that is not listed stays as
// the run was started: a setting that nobody thought about is refused.
import { InputError } from "../failure/errors.ts";
import { describeKeys } from "./describe-keys.ts";
import { parseRunConfig } from "./parse-config.ts";
import type { RunConfig } from "./run-config.ts";

interface Changeable {
  /** Why iterations before and after a change are of one experiment. */
  readonly because: string;
  /** Algorithms with which it stays, and why. */
  readonly not?: { readonly [A in RunConfig["algorithm"]]?: string };
}

/**
 * The settings that may change: what the machine needs, what is looked at, what is kept, and when the run ends. Limits in
 * tokens and turns (`agent.contextTokens`) are not among them: they decide which episodes are cut, on every machine alike.
 */
export const CHANGEABLE: Readonly<Record<string, Changeable>> = {
  "training.iterations": {
    because: "no iteration depends on how many follow",
    not: {
      sft: "the learning rate falls over all iterations, so those that are done were trained for this number",
    },
  },
  "rollout.attempts": { because: "an episode that is played again is planned with the same seed" },
  "rollout.concurrency": { because: "episodes know nothing of each other" },
  "agent.commandSeconds": { because: "a slower machine needs longer for the same command" },
  "agent.episodeSeconds": { because: "a slower machine needs longer for the same episode" },
  "evaluation.every": { because: "nothing is trained on an evaluation" },
  "verifier.keepFiles": { because: "the files are kept after the reward is known" },
  "keep.policyEvery": { because: "only old versions are deleted" },
  "keep.stateEvery": { because: "only old versions are deleted" },
  threads: { because: "another machine has other cores; sums may differ in their last bits" },
};

export interface SettingChange {
  readonly key: string;
  /** Undefined where it was not set. */
  readonly old: unknown;
  readonly new: unknown;
}

/**
 * @param overrides "path.to.key=value" with a YAML value
 * @returns the config and what is another value in it than before
 * @throws InputError for a setting that may not change, or as `parseRunConfig` does
 */
export function changeConfig(
  run: string,
  config: RunConfig,
  overrides: readonly string[],
): { readonly config: RunConfig; readonly changes: readonly SettingChange[] } {
  const keys = overrides.map(override => override.split("=", 1)[0]);
  const known = new Set(describeKeys().map(({ path }) => path));
  for (const key of keys) if (known.has(key)) assertChangeable(run, config, key);
  // Refuses what is no setting, and says which was meant.
  const changed = parseRunConfig(JSON.stringify(config, undefined, 2), `config of ${run}`, overrides);
  const changes = [...new Set(keys)]
    .map(key => ({ key, old: valueAt(config, key), new: valueAt(changed, key) }))
    .filter(change => change.old !== change.new);
  return { config: changed, changes };
}

function assertChangeable(run: string, { algorithm }: RunConfig, key: string): void {
  const reason = whyItStays(key, algorithm);
  if (reason === undefined) return;
  throw new InputError({
    what: "the setting cannot change in a run",
    where: key,
    expected: `${reason}; what can change: ${changeableKeys(algorithm).join(", ")}`,
    fix: `start another run that goes on from this one's policy: policy: {run: ${run}}`,
  });
}

/** @returns undefined for a setting that may change */
export function whyItStays(key: string, algorithm: RunConfig["algorithm"]): string | undefined {
  if (Object.hasOwn(CHANGEABLE, key)) return CHANGEABLE[key].not?.[algorithm];
  return "the iterations after the change would be of another experiment";
}

/** @param algorithm left out, those of any */
export function changeableKeys(algorithm?: RunConfig["algorithm"]): readonly string[] {
  return Object.entries(CHANGEABLE)
    .filter(([, { not }]) => algorithm === undefined || not?.[algorithm] === undefined)
    .map(([key]) => key);
}

function valueAt(config: RunConfig, key: string): unknown {
  const below = (value: unknown, name: string): unknown =>
    typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  return key.split(".").reduce(below, config);
}
