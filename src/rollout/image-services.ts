// How this machine makes images, from its file of images and the kind of its sandboxes.
import { InputError } from "../failure/errors.ts";
import { IMAGES_VARIABLE, type Images, readImages } from "../image/images-file.ts";
import { createRootBuilder } from "../sandbox/bubblewrap/root-builder.ts";
import { createDockerBuilder } from "../sandbox/docker/docker-builder.ts";
import type { SandboxProvider } from "../sandbox/sandbox.ts";
import type { ImageServices } from "./task-image.ts";

/**
 * @param sandboxes their kind decides which builder makes the images
 * @throws InputError naming the file and the path in it
 */
export function imageServices(file: string | undefined, sandboxes: SandboxProvider): ImageServices {
  const images = readImages(file);
  const isDocker = sandboxes.name === "docker";
  if (!isDocker) assertNoPublic(images, file);
  return {
    images,
    builder: isDocker ? createDockerBuilder(images) : createRootBuilder(images, sandboxes),
    // On a terminal, over the line that shows progress.
    onProgress: line => process.stderr.write(`${process.stderr.isTTY ? "\r\u001B[K" : ""}${line}\n`),
  };
}

/** Bubblewrap has no network like the one that a container engine calls public. */
function assertNoPublic(images: Images, file: string | undefined): void {
  const phase = (["agent", "verifier"] as const).find(name => images[name]?.network === "public");
  if (phase === undefined) return;
  throw new InputError({
    what: "bubblewrap sandboxes have this machine's network or none",
    where: `${file ?? process.env[IMAGES_VARIABLE]}: ${phase}.network`,
    expected: "none or host, got public",
    fix: "change it, or add --sandboxes docker",
  });
}
