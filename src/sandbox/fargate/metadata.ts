// Metadata that a daemon keeps for the driver that adopts its sandbox: its spec and its image.
import { z } from "zod";
import type { DaemonClient } from "../../sandboxd/client.ts";
import { parseBody } from "../../sandboxd/parse-body.ts";
import { DockerImageSpec, HostImageSpec, RecordedSpec } from "../recorded-spec.ts";
import type { SandboxSpec } from "../sandbox.ts";
import type { FargateImage } from "./fargate-image.ts";

const Metadata = z.strictObject({
  spec: RecordedSpec.extend({ image: z.union([DockerImageSpec, HostImageSpec]) }),
  image: z.strictObject({
    id: z.string(),
    taskDefinition: z.string(),
    env: z.record(z.string(), z.string()),
    workdir: z.string(),
    user: z.string().optional(),
    entrypoint: z.array(z.string()).readonly(),
    health: z
      .strictObject({
        argv: z.array(z.string()).readonly(),
        intervalMs: z.number(),
        timeoutMs: z.number(),
        patienceMs: z.number(),
      })
      .optional(),
  }),
});

export interface SandboxMetadata {
  readonly spec: SandboxSpec;
  readonly image: FargateImage;
}

export function encodeMetadata({ spec, image }: SandboxMetadata): Uint8Array {
  return Buffer.from(JSON.stringify({ spec, image }));
}

/** @throws Failure SandboxBroken for what no daemon of ours would have kept */
export function decodeMetadata(client: DaemonClient, body: Uint8Array): SandboxMetadata {
  const { spec, image } = parseBody(client, body, Metadata, "metadata");
  return { spec, image: { ...image, user: image.user, health: image.health } };
}
