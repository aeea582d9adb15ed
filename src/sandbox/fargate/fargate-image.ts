// The image that a sandbox's task is made from.
import type { ContainerImage } from "../container-image.ts";

/** An image's own settings, and the task definition that runs it. */
export interface FargateImage extends ContainerImage {
  readonly taskDefinition: string;
}

/** Stands for programs of no image in particular. */
export const DEFAULT_IMAGE = "default";
