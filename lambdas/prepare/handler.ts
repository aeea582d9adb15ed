// Makes everything ready that a phase's episodes need: their sandbox images, and the sampler. Called again until it is.
import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatchGetBuildsCommand, CodeBuildClient, StartBuildCommand } from "@aws-sdk/client-codebuild";
import {
  DescribeServicesCommand,
  ECSClient,
  RegisterTaskDefinitionCommand,
  UpdateServiceCommand,
} from "@aws-sdk/client-ecs";
import { pack } from "tar-stream";
import { z } from "zod";
import { InputError, InvariantError } from "../../src/failure/errors.ts";
import { sandboxTaskDefinition } from "../../src/planning/sandbox-task.ts";
import { readPlan } from "../../src/rollout/plan.ts";
import type { PhasePrefix } from "../../src/run/keys.ts";
import { phasePool } from "../../src/run/phase-pool.ts";
import { fetchTasks, storedPoolName } from "../../src/run/stored-pool.ts";
import { copyText, imageSourceHash, preparedImageKey } from "../../src/sandbox/fargate/prepared-images.ts";
import { packFolder } from "../../src/sandbox/tar.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { loadTask } from "../../src/task/load.ts";
import type { EnvironmentSource } from "../../src/task/task.ts";
import { NumberText, Phase } from "../schemas.ts";
import { readEnvironment, sandboxKind, stageHandler } from "../stage-handler.ts";
import { type ImageServices, prepareImages, type SandboxSource } from "./sandbox-images.ts";

export const PrepareEvent = z.strictObject({ phase: Phase });

/** ECS registers one definition a second for long; a little slower leaves room for whoever else does. */
const REGISTER_PAUSE_MS = 1200;

export const handler = stageHandler(PrepareEvent, async ({ phase }, { store, signal }) => {
  if (sandboxKind() !== "fargate") return { ready: true, waiting: 0 };
  const folder = join(tmpdir(), randomUUID());
  await mkdir(folder);
  try {
    const sources = await readSources(store, phase, folder, signal);
    const { waiting } = await prepareImages(sources, { ...imageServices(store), signal });
    const isAwake = await wakeSampler();
    return { ready: waiting === 0 && isAwake, waiting };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

async function readSources(
  store: ObjectStore,
  phase: PhasePrefix,
  folder: string,
  signal: AbortSignal,
): Promise<SandboxSource[]> {
  const poolFolder = await phasePool(phase, { store });
  const name = storedPoolName(poolFolder);
  if (name === undefined)
    throw new InvariantError("preflight lets stored pools pass, nothing else", { poolFolder });
  const tasks = [...new Set((await readPlan(store, phase)).map(({ task }) => task))];
  await fetchTasks({ pool: name, tasks, into: folder }, { store, signal });
  return (await Promise.all(tasks.map(task => readTaskSources(join(folder, task))))).flat();
}

/** Its own image, and those of verifiers that have one of theirs. */
async function readTaskSources(folder: string): Promise<readonly SandboxSource[]> {
  const { environment, steps } = await loadTask(folder);
  const separate = steps.flatMap(({ verifier: { place } }) =>
    place.kind === "separate" ? [place.source] : [],
  );
  return Promise.all([environment, ...separate].map(source => readSource(source, folder)));
}

async function readSource(environment: EnvironmentSource, task: string): Promise<SandboxSource> {
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

function imageServices(store: ObjectStore): Omit<ImageServices, "signal"> {
  const env = readEnvironment({
    T1_STORE_URL: z.string(),
    T1_BUILD_PROJECT: z.string(),
    T1_TASK_REPOSITORY: z.string(),
    T1_TOOLKIT_IMAGE: z.string(),
    T1_SANDBOX_FAMILIES: z.string(),
    T1_SANDBOX_CPU: NumberText,
    T1_SANDBOX_MEMORY_MIB: NumberText,
    T1_SANDBOX_DISK_GIB: NumberText,
    T1_SANDBOX_EXECUTION_ROLE: z.string(),
  });
  const codeBuild = new CodeBuildClient();
  const ecs = new ECSClient();
  const imageOf = (hash: string): string => `${env.T1_TASK_REPOSITORY}:${hash}`;
  return {
    store,
    registerPauseMs: REGISTER_PAUSE_MS,
    recordKey: hash => preparedImageKey(hash, env.T1_TOOLKIT_IMAGE),
    startBuild: async ({ hash, contextKey, configKey, token }) => {
      const variables = {
        T1_CONTEXT: `${env.T1_STORE_URL}/${contextKey}`,
        T1_CONFIG: `${env.T1_STORE_URL}/${configKey}`,
        T1_DOCKERFILE: "Dockerfile",
        T1_IMAGE: imageOf(hash),
      };
      const { build } = await codeBuild.send(
        new StartBuildCommand({
          projectName: env.T1_BUILD_PROJECT,
          idempotencyToken: token,
          environmentVariablesOverride: Object.entries(variables).map(([name, value]) => ({ name, value })),
        }),
      );
      return build?.id ?? "";
    },
    buildStatus: async id => {
      const { builds } = await codeBuild.send(new BatchGetBuildsCommand({ ids: [id] }));
      const status = builds?.[0]?.buildStatus;
      if (status === "SUCCEEDED") return "succeeded";
      return status === "IN_PROGRESS" ? "running" : "failed";
    },
    register: async hash => {
      const { taskDefinition } = await ecs.send(
        new RegisterTaskDefinitionCommand(
          sandboxTaskDefinition({
            // Families have at most 255 characters; 32 of the hash are as good as all.
            family: `${env.T1_SANDBOX_FAMILIES}${hash.slice(0, 32)}`,
            image: imageOf(hash),
            toolkitImage: env.T1_TOOLKIT_IMAGE,
            cpu: env.T1_SANDBOX_CPU,
            memoryMiB: env.T1_SANDBOX_MEMORY_MIB,
            diskGiB: env.T1_SANDBOX_DISK_GIB,
            executionRoleArn: env.T1_SANDBOX_EXECUTION_ROLE,
            environment: {},
          }),
        ),
      );
      return taskDefinition?.taskDefinitionArn ?? "";
    },
  };
}

/** @returns whether enough samplers run */
async function wakeSampler(): Promise<boolean> {
  const env = readEnvironment({
    T1_CLUSTER: z.string(),
    T1_SAMPLER_SERVICE: z.string(),
    T1_SAMPLER_COPIES: NumberText,
  });
  const ecs = new ECSClient();
  const named = { cluster: env.T1_CLUSTER, services: [env.T1_SAMPLER_SERVICE] };
  const { services } = await ecs.send(new DescribeServicesCommand(named));
  const { desiredCount = 0, runningCount = 0 } = services?.[0] ?? {};
  if (desiredCount < env.T1_SAMPLER_COPIES) {
    await ecs.send(
      new UpdateServiceCommand({
        cluster: env.T1_CLUSTER,
        service: env.T1_SAMPLER_SERVICE,
        desiredCount: env.T1_SAMPLER_COPIES,
      }),
    );
  }
  return runningCount >= env.T1_SAMPLER_COPIES;
}
