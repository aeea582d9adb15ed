// Images that the deployment has built and registered, as their records in the store say: the prepare stage writes one
// per content, drivers read them. Both name an image by what it is built from.
import { z } from "zod";
import { InputError } from "../../failure/errors.ts";
import { sha256 } from "../../files/sha256.ts";
import type { BuildRequest, ImageBuilder } from "../../image/image-builder.ts";
import { parseJson } from "../../store/json.ts";
import type { ObjectStore } from "../../store/object-store.ts";
import { hashFolder } from "../../task/hash.ts";
import { ContainerConfig, containerImage } from "../container-image.ts";
import { DEFAULT_IMAGE, type FargateImage } from "./fargate-image.ts";

export const PreparedImage = z.strictObject({ taskDefinitionArn: z.string(), config: ContainerConfig });
export type PreparedImage = z.infer<typeof PreparedImage>;

/**
 * @param hash of what the image is built from
 * @param toolkitImage of the daemon: with another one, what was registered is of no use
 */
export function preparedImageKey(hash: string, toolkitImage: string): string {
  return `images/${hash}/${sha256(Buffer.from(toolkitImage)).slice(0, 12)}.json`;
}

/** Same content, same hash, wherever the folder lies. */
export async function imageSourceHash(source: BuildRequest["source"]): Promise<string> {
  return source.kind === "image" ? sha256(Buffer.from(copyText(source.name))) : hashFolder(source.context);
}

/** Dockerfile by which a public image is copied into a registry of one's own. */
export function copyText(image: string): string {
  return `FROM ${image}\n`;
}

export interface PreparedImagesOptions {
  readonly store: ObjectStore;
  readonly toolkitImage: string;
  /** First part of the names of task definitions. */
  readonly families: string;
}

/** @throws InputError for one that the prepare stage has not made ready */
export async function findPreparedImage(
  reference: string,
  { store, toolkitImage, families }: PreparedImagesOptions,
): Promise<FargateImage> {
  if (reference === DEFAULT_IMAGE)
    return { ...containerImage(DEFAULT_IMAGE, {}), taskDefinition: `${families}${DEFAULT_IMAGE}` };
  const key = preparedImageKey(reference, toolkitImage);
  const found = await store.get(key);
  if (found === undefined) {
    throw new InputError({
      what: "the image of a task is not prepared",
      where: key,
      expected: "a record of the prepare stage",
      fix: "let the state machine play the phase, which prepares images first",
    });
  }
  const { taskDefinitionArn, config } = parseJson(found.body, key, PreparedImage);
  return { ...containerImage(reference, config), taskDefinition: taskDefinitionArn };
}

/** Builds nothing: it finds what was built from the same content. */
export function createPreparedImages(options: PreparedImagesOptions): ImageBuilder {
  return {
    usesHostPrograms: false,
    hasUsers: true,
    hasServices: false,
    build: async ({ source }) => {
      const hash = await imageSourceHash(source);
      const { workdir, env } = await findPreparedImage(hash, options);
      const image = { kind: "docker", reference: hash, files: [] } as const;
      // Its health check is its sandboxes' own.
      return { image, workdir, env, healthcheck: undefined, hash };
    },
  };
}
