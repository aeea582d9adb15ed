// Derives the steps of a task: each merges its own tables with the task's, and must have certain files.
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { InputError } from "../failure/errors.ts";
import { stripCanary } from "./canary.ts";
import { deriveEnvironment, deriveHealthcheck, derivePhase, toMs } from "./derive-settings.ts";
import { isFolder } from "./environment-source.ts";
import type { OperatingSystem } from "./environment-toml.ts";
import { readText } from "./read-text.ts";
import type { AgentSettings, TaskStep, VerifierPlace, VerifierSettings } from "./task.ts";
import type { StepToml, TaskToml, VerifierToml } from "./task-toml.ts";
import { deriveVerifierPlace } from "./verifier-place.ts";

/**
 * @param folder  the task folder, symbolic links resolved
 * @param ignored paths that are not uploaded, relative to it
 * @throws InputError when an instruction or a test script is missing, or the script is ignored
 */
export function deriveSteps(
  folder: string,
  toml: TaskToml,
  ignored: readonly string[],
): readonly [TaskStep, ...TaskStep[]] {
  const [first, ...others] = toml.steps;
  if (first === undefined) return [deriveStep(folder, toml, undefined, ignored)];
  const derive = (step: StepToml) => deriveStep(folder, toml, step, ignored);
  return [derive(first), ...others.map(derive)];
}

function deriveStep(
  folder: string,
  toml: TaskToml,
  step: StepToml | undefined,
  ignored: readonly string[],
): TaskStep {
  const home = step === undefined ? folder : join(folder, "steps", step.name);
  const instruction = stripCanary(readText(join(home, "instruction.md")));
  const place = deriveVerifierPlace(folder, toml, step);
  const testsFolders = [...new Set([join(folder, "tests"), join(home, "tests")])].filter(existsSync);
  assertTestScript(folder, home, testOs(toml, place), { place, ignored });
  return {
    name: step?.name,
    instruction,
    agent: mergeAgent(toml, step),
    verifier: mergeVerifier(toml, step, place),
    minReward: step?.min_reward,
    healthcheck: step?.healthcheck === undefined ? undefined : deriveHealthcheck(step.healthcheck),
    artifacts: [...toml.artifacts, ...(step?.artifacts ?? [])],
    testsFolders: place.kind === "separate" && place.hasTestsInImage ? [] : testsFolders,
    solutionFolder: [join(home, "solution"), join(folder, "solution")].find(isFolder),
    workdirFolder: step === undefined ? undefined : [join(home, "workdir")].find(isFolder),
    trajectoryFile: [join(home, "trajectory.json")].find(existsSync),
  };
}

function mergeAgent(toml: TaskToml, step: StepToml | undefined): AgentSettings {
  const timeoutSec = step?.agent.timeout_sec ?? toml.agent.timeout_sec;
  return {
    timeoutMs: timeoutSec === undefined ? undefined : toMs(timeoutSec),
    user: step?.agent.user ?? toml.agent.user,
    network:
      (step === undefined ? undefined : derivePhase(step.agent)) ??
      derivePhase(toml.agent) ??
      deriveEnvironment(toml.environment).network,
  };
}

function mergeVerifier(toml: TaskToml, step: StepToml | undefined, place: VerifierPlace): VerifierSettings {
  const own: VerifierToml = step?.verifier ?? toml.verifier;
  const environment = place.kind === "separate" ? place.settings : deriveEnvironment(toml.environment);
  const collect = [...toml.verifier.collect, ...(step?.verifier.collect ?? [])];
  return {
    // In a task with steps only the step's limit or its default counts; the task's own applies to no step (Harbor 0.26).
    timeoutMs: toMs(own.timeout_sec),
    user: own.user ?? toml.verifier.user,
    network: derivePhase(own) ?? derivePhase(toml.verifier) ?? environment.network,
    env: { ...toml.verifier.env, ...own.env },
    collect: collect.map(({ command, service, timeout_sec, user }) => ({
      command,
      service,
      timeoutMs: toMs(timeout_sec),
      user,
    })),
    place,
  };
}

function testOs(toml: TaskToml, place: VerifierPlace): OperatingSystem {
  return place.kind === "separate" ? place.settings.os : (toml.environment.os ?? "linux");
}

/** A step's own script wins over the shared one. Tests that an image contains are not looked for. */
function assertTestScript(
  folder: string,
  home: string,
  os: OperatingSystem,
  { place, ignored }: { readonly place: VerifierPlace; readonly ignored: readonly string[] },
): void {
  if (place.kind === "separate" && place.hasTestsInImage) return;
  const name = os === "windows" ? "test.bat" : "test.sh";
  const expected = [...new Set([join(home, "tests", name), join(folder, "tests", name)])];
  const script = expected.find(existsSync);
  if (script === undefined) {
    throw new InputError({
      what: "the test script is missing",
      where: home,
      expected: `${expected.map(path => relative(folder, path)).join(" or ")}, because the tests run on ${os}`,
      fix: `add ${expected[0]}`,
    });
  }
  const path = relative(folder, script);
  if (ignored.some(entry => path === entry || path.startsWith(`${entry}/`))) {
    throw new InputError({
      what: "the test script is ignored by a .harborignore",
      where: script,
      expected: "a script that is uploaded",
      fix: "take it out of the .harborignore's patterns",
    });
  }
}
