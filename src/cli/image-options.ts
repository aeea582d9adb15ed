// The option that names the machine's file of images, and what is made from it.
import { Option } from "commander";
import type { ImageServices } from "../pipeline/task-image.ts";
import { IMAGES_VARIABLE, readImages } from "../sandbox/image/images-file.ts";
import { createRootBuilder } from "../sandbox/image/root-builder.ts";
import type { SandboxProvider } from "../sandbox/sandbox.ts";

export function imagesOption(): Option {
  return new Option(
    "--images <file>",
    "YAML file that says which folders stand for images on this machine, and what tasks get that want network access (docs/images.md)",
  ).env(IMAGES_VARIABLE);
}

/** @throws InputError naming the file and the path in it */
export function imageServices(file: string | undefined, sandboxes: SandboxProvider): ImageServices {
  const images = readImages(file);
  return {
    images,
    builder: createRootBuilder(images, sandboxes),
    // On a terminal over the line that shows progress.
    onProgress: line => process.stderr.write(`${process.stderr.isTTY ? "\r\u001B[K" : ""}${line}\n`),
  };
}
