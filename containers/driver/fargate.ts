// Opens sandboxes on Fargate for a driver that is an ECS task itself.
import { ECSClient } from "@aws-sdk/client-ecs";
import { z } from "zod";
import { type Images, type PhaseNetwork, readImages } from "../../src/image/images-file.ts";
import type { ImageServices } from "../../src/rollout/task-image.ts";
import { parsePhase } from "../../src/run/keys.ts";
import { createPreparedImages, findPreparedImage } from "../../src/sandbox/fargate/prepared-images.ts";
import { FargateProvider } from "../../src/sandbox/fargate/provider.ts";
import { readStop } from "../../src/sandbox/fargate/stop-records.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import { type DRIVER_JOB, FARGATE_SETTINGS } from "../../src/stages/jobs.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

const CONNECT_MS = 5_000;
const REQUEST_MS = 30_000;

type DriverJob = ReturnType<typeof DRIVER_JOB.fromEnvironment>;

/** @throws InputError naming each variable that is missing or wrong */
export async function openFargate(
  store: ObjectStore,
  { phase, market }: Pick<DriverJob, "phase" | "market">,
): Promise<{ readonly sandboxes: SandboxProvider; readonly images: ImageServices }> {
  const settings = FARGATE_SETTINGS.fromEnvironment(process.env);
  const { toolkitImage, families, cluster, subnets, securityGroups } = settings;
  const prepared = { store, toolkitImage, families };
  const driver = await ownTask(settings.metadataUrl);
  const sandboxes = new FargateProvider({
    client: new ECSClient({
      maxAttempts: 1,
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        requestTimeout: REQUEST_MS,
        throwOnRequestTimeout: true,
      },
    }),
    ...{ cluster, subnets, securityGroups },
    networkedGroups: settings.networkedGroups ?? [],
    market: market === "FARGATE" ? "on-demand" : settings.sandboxMarket,
    findImage: reference => findPreparedImage(reference, prepared),
    findStop: arn => readStop(store, arn),
    tags: { "t1:run": parsePhase(phase).run },
    ...(driver === undefined ? {} : { driver }),
  });
  const images = { ...readImages(undefined), ...networkOf(settings.proxyUrl) };
  return { sandboxes, images: { images, builder: createPreparedImages(prepared) } };
}

/** Some programs read these variables in capitals, others in small letters. */
function networkOf(proxyUrl: string | undefined): Partial<Pick<Images, "agent" | "verifier">> {
  if (proxyUrl === undefined) return {};
  const names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
  const proxies = Object.fromEntries(names.map(name => [name, proxyUrl]));
  // Reach the task's own servers directly, because the proxy would refuse them.
  const loopback = "localhost,127.0.0.1,::1";
  const env = { ...proxies, no_proxy: loopback, NO_PROXY: loopback };
  const phase: PhaseNetwork = { network: "public", env };
  return { agent: phase, verifier: phase };
}

const TaskMetadata = z.object({ TaskARN: z.string() });

/** The sweeper looks for this task to see whether a sandbox's driver is gone. @returns undefined outside of ECS */
async function ownTask(metadataUrl: string | undefined): Promise<string | undefined> {
  if (metadataUrl === undefined) return undefined;
  const answer = await fetch(`${metadataUrl}/task`, { signal: AbortSignal.timeout(REQUEST_MS) });
  return TaskMetadata.parse(await answer.json()).TaskARN;
}
