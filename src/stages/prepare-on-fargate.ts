// Makes a phase's sandbox images ready in a deployment: one image and one task definition per distinct content, made
// once, and enough samplers awake. Registering is limited to one a second, and parallel registrations in one family fail;
// so a family is named by the content, and the store is asked first what was registered.
//   builds/<hash>.tar          build context
//   builds/<hash>.json         which build was started for it
//   builds/<hash>.config.json  what the built image says of itself
//   images/<hash>/….json       the image and its task definition; with it the image is ready
import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pack } from "tar-stream";
import { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";
import { readPlan } from "../rollout/plan.ts";
import type { PhasePrefix } from "../run/keys.ts";
import { phasePool } from "../run/phase-pool.ts";
import { fetchTasks, storedPoolName } from "../run/stored-pool.ts";
import { ContainerConfig } from "../sandbox/container-image.ts";
import {
  copyText,
  imageSourceHash,
  type PreparedImage,
  preparedImageKey,
} from "../sandbox/fargate/prepared-images.ts";
import { packFolder } from "../sandbox/tar.ts";
import { encodeJson, parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { loadTask } from "../task/load.ts";
import type { EnvironmentSource } from "../task/task.ts";
import type { PrepareServices } from "./prepare.ts";

/** Requests to the services that build and keep images. */
export interface ImageCloud {
  /** @param token starts with the same token are the same build @returns the build's id */
  readonly startBuild: (options: {
    readonly hash: string;
    readonly contextKey: string;
    readonly configKey: string;
    readonly token: string;
  }) => Promise<string>;
  readonly buildStatus: (id: string) => Promise<"running" | "succeeded" | "failed">;
  /** @returns ARN of the registered task definition */
  readonly register: (hash: string) => Promise<string>;
  /** Pause between registrations. */
  readonly registerPauseMs: number;
  readonly toolkitImage: string;
  /** Starts samplers where too few are wanted. @returns whether enough run */
  readonly wakeSampler: () => Promise<boolean>;
}

interface ImageSource {
  /** Content hash of `context`. */
  readonly hash: string;
  /** A task that is built from it, for messages. */
  readonly task: string;
  /** Tar archive with a Dockerfile. */
  readonly context: () => Promise<Uint8Array>;
}

interface ImageServices extends ImageCloud {
  readonly store: ObjectStore;
  /** Ends the work between two images. */
  readonly signal: AbortSignal;
}

export function prepareOnFargate(cloud: ImageCloud): PrepareServices["makeReady"] {
  return async (phase, { store, signal }) => {
    const folder = join(tmpdir(), randomUUID());
    await mkdir(folder);
    try {
      const sources = await readSources(store, phase, folder, signal);
      const { waiting } = await prepareImages(sources, { ...cloud, store, signal });
      return waiting + ((await cloud.wakeSampler()) ? 0 : 1);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

async function readSources(
  store: ObjectStore,
  phase: PhasePrefix,
  folder: string,
  signal: AbortSignal,
): Promise<ImageSource[]> {
  const poolFolder = await phasePool(phase, { store });
  const name = storedPoolName(poolFolder);
  if (name === undefined) throw new InvariantError("preflight lets only stored pools pass", { poolFolder });
  const tasks = [...new Set((await readPlan(store, phase)).map(({ task }) => task))];
  await fetchTasks({ pool: name, tasks, into: folder }, { store, signal });
  return (await Promise.all(tasks.map(task => readTaskSources(join(folder, task))))).flat();
}

/** The task's own image, and those of verifiers that have one of theirs. */
async function readTaskSources(folder: string): Promise<readonly ImageSource[]> {
  const { environment, steps } = await loadTask(folder);
  const separate = steps.flatMap(({ verifier: { place } }) =>
    place.kind === "separate" ? [place.source] : [],
  );
  return Promise.all([environment, ...separate].map(source => readSource(source, folder)));
}

async function readSource(environment: EnvironmentSource, task: string): Promise<ImageSource> {
  switch (environment.kind) {
    case "dockerfile": {
      const { dockerfile, folder: context } = environment;
      const hash = await imageSourceHash({ kind: "dockerfile", dockerfile, context });
      return { hash, task, context: () => packFolder(context) };
    }
    case "image": {
      const hash = await imageSourceHash({ kind: "image", name: environment.image });
      return { hash, task, context: () => packText("Dockerfile", copyText(environment.image)) };
    }
    case "compose":
      throw new InputError({
        what: "the task is built from docker-compose",
        where: task,
        expected: "a Dockerfile or an image: a sandbox is one container here",
        fix: "leave it out of the pool",
      });
    default:
      return environment satisfies never;
  }
}

async function packText(name: string, text: string): Promise<Uint8Array> {
  const archive = pack();
  archive.entry({ name }, text);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const BuildRecord = z.strictObject({ id: z.string() });

/** @returns how many images are still being built @throws InputError when a build failed */
export async function prepareImages(
  sources: readonly ImageSource[],
  services: ImageServices,
): Promise<{ readonly waiting: number; readonly registered: number }> {
  const { store, signal, register, registerPauseMs, toolkitImage } = services;
  const distinct = [...new Map(sources.map(source => [source.hash, source])).values()];
  let waiting = 0;
  let registered = 0;
  for (const source of distinct) {
    signal.throwIfAborted();
    const recordKey = preparedImageKey(source.hash, toolkitImage);
    if ((await store.head(recordKey)) !== undefined) continue;
    if (!(await isBuilt(source, services))) {
      waiting++;
      continue;
    }
    if (registered > 0) await sleep(registerPauseMs);
    const taskDefinitionArn = await register(source.hash);
    registered++;
    const record: PreparedImage = { taskDefinitionArn, config: await readConfig(source, store) };
    await store.put(recordKey, encodeJson(record), { ifNoneMatch: "*" });
  }
  return { waiting, registered };
}

async function isBuilt({ hash, task, context }: ImageSource, services: ImageServices): Promise<boolean> {
  const { store, startBuild, buildStatus } = services;
  const key = `builds/${hash}.json`;
  const started = await store.get(key);
  if (started === undefined) {
    const contextKey = `builds/${hash}.tar`;
    await store.put(contextKey, await context(), { ifNoneMatch: "*" });
    const record: z.infer<typeof BuildRecord> = {
      id: await startBuild({ hash, contextKey, configKey: configKey(hash), token: hash.slice(0, 32) }),
    };
    await store.put(key, encodeJson(record), { ifNoneMatch: "*" });
    return false;
  }
  const { id } = parseJson(started.body, key, BuildRecord);
  const status = await buildStatus(id);
  if (status !== "failed") return status === "succeeded";
  // Deleted, so that a resumed run builds it anew.
  await store.delete(key);
  throw new InputError({
    what: "the image of a task cannot be built",
    where: task,
    expected: `build ${id} to succeed; its log says why`,
    fix: "repair the task's environment or leave the task out of the pool, and resume the run",
  });
}

function configKey(hash: string): string {
  return `builds/${hash}.config.json`;
}

async function readConfig({ hash, task }: ImageSource, store: ObjectStore): Promise<PreparedImage["config"]> {
  const found = await store.get(configKey(hash));
  if (found !== undefined) return parseJson(found.body, configKey(hash), ContainerConfig);
  throw new InputError({
    what: "the build of a task's image left no description of the image",
    where: configKey(hash),
    expected: `what docker image inspect says of the image of ${task}`,
    fix: "delete the build's record beside it, so that it is built again",
  });
}
