// Decides the source of an environment's image from the files in its folder and from docker_image.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import type { EnvironmentSource } from "./task.ts";

/**
 * A docker-compose.yaml wins: its main service then uses the image or the Dockerfile. Otherwise the image wins, if one is
 * named, and then the Dockerfile.
 *
 * @param folder where Dockerfile and docker-compose.yaml would lie; need not exist when an image is named
 * @param image  docker_image; an empty one counts as none
 * @throws InputError when none of the three exists
 */
export function findEnvironmentSource(folder: string, image: string | undefined): EnvironmentSource {
  const named = image === "" ? undefined : image;
  const dockerfile = existing(join(folder, "Dockerfile"));
  const composeFile = existing(join(folder, "docker-compose.yaml"));
  if (composeFile !== undefined) return { kind: "compose", folder, composeFile, image: named, dockerfile };
  if (named !== undefined) {
    const isThere = isFolder(folder);
    const uploadsFolder = isThere && dockerfile === undefined && readdirSync(folder).length > 0;
    return { kind: "image", image: named, folder: isThere ? folder : undefined, dockerfile, uploadsFolder };
  }
  if (dockerfile !== undefined) return { kind: "dockerfile", folder, dockerfile };
  const misnamed = existing(join(folder, "docker-compose.yml"));
  throw new InputError({
    what: "nothing says how to make the environment",
    where: folder,
    expected: "a Dockerfile or docker-compose.yaml there, or docker_image in task.toml",
    fix:
      misnamed === undefined
        ? `add ${join(folder, "Dockerfile")}, or docker_image = "…" to the environment's table`
        : `rename ${misnamed} to docker-compose.yaml`,
  });
}

export function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function existing(path: string): string | undefined {
  return existsSync(path) ? path : undefined;
}
