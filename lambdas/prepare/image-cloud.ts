// CodeBuild builds the images; ECS has their task definitions and the sampler.
import { BatchGetBuildsCommand, CodeBuildClient, StartBuildCommand } from "@aws-sdk/client-codebuild";
import {
  DescribeServicesCommand,
  ECSClient,
  RegisterTaskDefinitionCommand,
  UpdateServiceCommand,
} from "@aws-sdk/client-ecs";
import { sandboxTaskDefinition } from "../../src/planning/sandbox-task.ts";
import type { prepare } from "../../src/stages/prepare.ts";
import type { ImageCloud } from "../../src/stages/prepare-on-fargate.ts";

type Settings = ReturnType<typeof prepare.settings.fromEnvironment>;

/** ECS sustains one registration a second; a slightly lower rate leaves room for other users of the account. */
const REGISTER_PAUSE_MS = 1200;

export function imageCloud(settings: Settings): ImageCloud {
  const { storeUrl, taskRepository, toolkitImage } = settings;
  const codeBuild = new CodeBuildClient();
  const ecs = new ECSClient();
  const imageOf = (hash: string): string => `${taskRepository}:${hash}`;
  return {
    registerPauseMs: REGISTER_PAUSE_MS,
    toolkitImage,
    startBuild: async ({ hash, contextKey, configKey, token }) => {
      const variables = {
        T1_CONTEXT: `${storeUrl}/${contextKey}`,
        T1_CONFIG: `${storeUrl}/${configKey}`,
        T1_DOCKERFILE: "Dockerfile",
        T1_IMAGE: imageOf(hash),
      };
      const { build } = await codeBuild.send(
        new StartBuildCommand({
          projectName: settings.buildProject,
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
            // A family's name has at most 255 characters; 32 of the hash are unique enough.
            family: `${settings.families}${hash.slice(0, 32)}`,
            image: imageOf(hash),
            toolkitImage,
            cpu: settings.sandboxCpu,
            memoryMiB: settings.sandboxMemoryMiB,
            diskGiB: settings.sandboxDiskGiB,
            executionRoleArn: settings.sandboxExecutionRole,
            environment: {},
          }),
        ),
      );
      return taskDefinition?.taskDefinitionArn ?? "";
    },
    wakeSampler: () => wakeSampler(ecs, settings),
  };
}

async function wakeSampler(
  ecs: ECSClient,
  { cluster, samplerService: service, samplerCopies: wanted }: Settings,
): Promise<boolean> {
  const { services } = await ecs.send(new DescribeServicesCommand({ cluster, services: [service] }));
  const { desiredCount = 0, runningCount = 0 } = services?.[0] ?? {};
  if (desiredCount < wanted)
    await ecs.send(new UpdateServiceCommand({ cluster, service, desiredCount: wanted }));
  return runningCount >= wanted;
}
