// The option that names the machine's file of images.
import { Option } from "commander";
import { IMAGES_VARIABLE } from "../image/images-file.ts";

export function imagesOption(): Option {
  return new Option(
    "--images <file>",
    "YAML file that says which folders stand for images on this machine, and what tasks get that want network access (docs/images.md)",
  ).env(IMAGES_VARIABLE);
}
