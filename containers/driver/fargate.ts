// Sandboxes on Fargate for a driver that is a task itself.
import { ECSClient } from "@aws-sdk/client-ecs";
import { z } from "zod";
import { type Images, type PhaseNetwork, readImages } from "../../src/image/images-file.ts";
import type { ImageServices } from "../../src/rollout/task-image.ts";
import { type PhasePrefix, parsePhase } from "../../src/run/keys.ts";
import { createPreparedImages, findPreparedImage } from "../../src/sandbox/fargate/prepared-images.ts";
import { FargateProvider } from "../../src/sandbox/fargate/provider.ts";
import { readStop } from "../../src/sandbox/fargate/stop-records.ts";
import type { SandboxProvider } from "../../src/sandbox/sandbox.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { readContainerEnvironment } from "../environment.ts";
import { FARGATE_ENVIRONMENT } from "./environment.ts";

const CONNECT_MS = 5_000;
const REQUEST_MS = 30_000;

/** @throws InputError naming each variable that is missing or wrong */
export async function openFargate(
  store: ObjectStore,
  phase: PhasePrefix,
): Promise<{ readonly sandboxes: SandboxProvider; readonly images: ImageServices }> {
  const env = readContainerEnvironment(FARGATE_ENVIRONMENT);
  const prepared = { store, toolkitImage: env.T1_TOOLKIT_IMAGE, families: env.T1_SANDBOX_FAMILIES };
  const driver = await ownTask(env.ECS_CONTAINER_METADATA_URI_V4);
  const sandboxes = new FargateProvider({
    client: new ECSClient({
      maxAttempts: 1,
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        requestTimeout: REQUEST_MS,
        throwOnRequestTimeout: true,
      },
    }),
    cluster: env.T1_CLUSTER,
    subnets: env.T1_SANDBOX_SUBNETS,
    securityGroups: env.T1_SANDBOX_GROUP,
    networkedGroups: env.T1_NETWORKED_GROUP ?? [],
    market: env.T1_MARKET === "FARGATE" ? "on-demand" : env.T1_SANDBOX_MARKET,
    findImage: reference => findPreparedImage(reference, prepared),
    findStop: arn => readStop(store, arn),
    tags: { "t1:run": parsePhase(phase).run },
    ...(driver === undefined ? {} : { driver }),
  });
  const images = { ...readImages(undefined), ...networkOf(env.T1_PROXY_URL) };
  return { sandboxes, images: { images, builder: createPreparedImages(prepared) } };
}

/** Programs find the proxy by these names, some by the large ones and some by the small ones. */
function networkOf(proxyUrl: string | undefined): Partial<Pick<Images, "agent" | "verifier">> {
  if (proxyUrl === undefined) return {};
  const names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
  const proxies = Object.fromEntries(names.map(name => [name, proxyUrl]));
  // What a task serves to itself is no business of the proxy's, which would refuse it.
  const loopback = "localhost,127.0.0.1,::1";
  const env = { ...proxies, no_proxy: loopback, NO_PROXY: loopback };
  const phase: PhaseNetwork = { network: "public", env };
  return { agent: phase, verifier: phase };
}

const TaskMetadata = z.object({ TaskARN: z.string() });

/** By which the sweeper sees that a sandbox's driver is gone. @returns undefined outside of ECS */
async function ownTask(metadataUrl: string | undefined): Promise<string | undefined> {
  if (metadataUrl === undefined) return undefined;
  const answer = await fetch(`${metadataUrl}/task`, { signal: AbortSignal.timeout(REQUEST_MS) });
  return TaskMetadata.parse(await answer.json()).TaskARN;
}
