// From what tasks build their environments from to task definitions that can be run: one image and one definition per
// distinct content, made once. Registering is limited to one a second, and parallel registrations in one family fail;
// so a family is named by the content, and what was registered is looked up in the store first.
//   builds/<hash>.tar          build context
//   builds/<hash>.json         which build was started for it
//   builds/<hash>.config.json  what the built image says of itself
//   images/<hash>/….json       the image and its task definition; with it the image is ready
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { InputError } from "../../src/failure/errors.ts";
import { ContainerConfig } from "../../src/sandbox/container-image.ts";
import type { PreparedImage } from "../../src/sandbox/fargate/prepared-images.ts";
import { encodeJson, parseJson } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

export interface SandboxSource {
  /** Content hash of `context`. */
  readonly hash: string;
  /** A task that is built from it, for messages. */
  readonly task: string;
  /** Tar archive with a Dockerfile. */
  readonly context: () => Promise<Uint8Array>;
}

export interface ImageServices {
  readonly store: ObjectStore;
  /** @param token repeated starts with the same one are the same build @returns the build's id */
  readonly startBuild: (options: {
    hash: string;
    contextKey: string;
    configKey: string;
    token: string;
  }) => Promise<string>;
  readonly buildStatus: (id: string) => Promise<"running" | "succeeded" | "failed">;
  /** Where the record of a ready image lies. */
  readonly recordKey: (hash: string) => string;
  /** @returns ARN of the registered definition */
  readonly register: (hash: string) => Promise<string>;
  /** Pause between registrations. */
  readonly registerPauseMs: number;
  /** Ends the work between two images. */
  readonly signal?: AbortSignal;
}

const BuildRecord = z.strictObject({ id: z.string() });

/** @returns how many images are still being built @throws InputError when a build failed */
export async function prepareImages(
  sources: readonly SandboxSource[],
  services: ImageServices,
): Promise<{ readonly waiting: number; readonly registered: number }> {
  const distinct = [...new Map(sources.map(source => [source.hash, source])).values()];
  let waiting = 0;
  let registered = 0;
  for (const source of distinct) {
    services.signal?.throwIfAborted();
    if ((await services.store.head(services.recordKey(source.hash))) !== undefined) continue;
    if (!(await isBuilt(source, services))) {
      waiting++;
      continue;
    }
    if (registered > 0) await sleep(services.registerPauseMs);
    const taskDefinitionArn = await services.register(source.hash);
    registered++;
    const config = await readConfig(source, services.store);
    const record: PreparedImage = { taskDefinitionArn, config };
    await services.store.put(services.recordKey(source.hash), encodeJson(record), { ifNoneMatch: "*" });
  }
  return { waiting, registered };
}

async function isBuilt({ hash, task, context }: SandboxSource, services: ImageServices): Promise<boolean> {
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
  // Gone, so that a resumed run builds it anew.
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

async function readConfig(
  { hash, task }: SandboxSource,
  store: ObjectStore,
): Promise<PreparedImage["config"]> {
  const found = await store.get(configKey(hash));
  if (found !== undefined) return parseJson(found.body, configKey(hash), ContainerConfig);
  throw new InputError({
    what: "the build of a task's image left no word about the image",
    where: configKey(hash),
    expected: `what docker image inspect says of the image of ${task}`,
    fix: "delete the build's record beside it, so that it is built again",
  });
}
