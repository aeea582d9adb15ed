// One emulator for all suites of the project, with the deployment in it. Which one:
//   AWS_ENDPOINT_URL   one that runs already (a LocalStack with a token, Floci, …); T1_EMULATOR_CAN says what it can
//   T1_EMULATOR        ministack (default), ministack-docker, localstack
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type Capability, capabilitiesOf, type EmulatorKind } from "./capabilities.ts";
import { deploy, destroy } from "./deploy.ts";
import { buildImages, DOCKER_OPTIONS, EMULATOR_LABEL, removeContainers } from "./images.ts";
import { findLocalstack, startLocalstack } from "./localstack.ts";
import { findMinistack, startMinistack } from "./ministack.ts";
import { type Emulator, environmentFor } from "./process.ts";
import { mockFile } from "./scenarios.ts";

export type Provided =
  | {
      readonly kind: EmulatorKind;
      readonly endpoint: string;
      readonly can: readonly Capability[];
    }
  | { readonly missing: string };

declare module "vitest" {
  interface ProvidedContext {
    emulator: Provided;
  }
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "t1-emulator-"));
  const mocks = join(folder, "mocks.json");
  await writeFile(mocks, JSON.stringify(mockFile("t1")));
  const started = await start(mocks);
  if ("missing" in started) {
    process.stderr.write(`the suites of emulators are skipped: ${started.missing}\n`);
    project.provide("emulator", started);
    await rm(folder, { recursive: true, force: true });
    return undefined;
  }
  const { kind, emulator } = started;
  const can = capabilitiesOf(kind);
  const stop = async (): Promise<void> => {
    // An emulator of ours forgets everything when it ends; in the light lane that cleans up enough.
    try {
      if (kind !== "ministack" && can.includes("stacks")) await destroy(emulator.environment);
    } finally {
      await emulator.stop();
      await rm(folder, { recursive: true, force: true });
    }
  };
  try {
    if (can.includes("stacks")) await deploy(emulator.environment);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide("emulator", { kind, endpoint: emulator.endpoint, can });
  return stop;
}

async function start(
  mocks: string,
): Promise<{ readonly kind: EmulatorKind; readonly emulator: Emulator } | { readonly missing: string }> {
  const given = process.env.AWS_ENDPOINT_URL;
  if (given !== undefined && given !== "") {
    const emulator = { endpoint: given, environment: environmentFor(given), stop: async () => {} };
    return { kind: "other", emulator };
  }
  const kind = process.env.T1_EMULATOR ?? "ministack";
  if (kind === "localstack") {
    const found = await findLocalstack();
    return "missing" in found ? found : { kind, emulator: await startLocalstack(found.python, mocks) };
  }
  if (kind !== "ministack" && kind !== "ministack-docker")
    throw new Error(`T1_EMULATOR: expected ministack, ministack-docker or localstack, got ${kind}`);
  const found = await findMinistack();
  if ("missing" in found) return found;
  if (kind === "ministack")
    return { kind, emulator: await startMinistack(found.python, { tasks: "process", mocks }) };
  const missing = await buildImages();
  if (missing !== undefined) return { missing };
  const name = `${process.pid}`;
  const environment = { T1_DOCKER_OPTIONS: `${DOCKER_OPTIONS} --label ${EMULATOR_LABEL}=${name}` };
  const emulator = await startMinistack(found.python, { tasks: "docker", mocks, environment });
  const stop = async (): Promise<void> => {
    await emulator.stop();
    await removeContainers(name);
  };
  return { kind, emulator: { ...emulator, stop } };
}
