// What a task's sandboxes start from: this machine's own programs where the task says that any will do, else its image.

import type { BuildRequest, ImageBuilder } from "../image/image-builder.ts";
import type { Images } from "../image/images-file.ts";
import { isHostDockerfile, readHostDockerfile } from "../sandbox/bubblewrap/host-dockerfile.ts";
import type { SandboxFile, SandboxImage, SandboxService } from "../sandbox/sandbox.ts";
import { type ComposeBuild, readComposeFile } from "../task/compose-file.ts";
import type { EnvironmentSettings, EnvironmentSource, Healthcheck } from "../task/task.ts";
import { buildServices } from "./compose-services.ts";

/** How this machine makes images, and what it allows them. */
export interface ImageServices {
  readonly images: Images;
  readonly builder: ImageBuilder;
  /** Lines about builds. */
  readonly onProgress?: (line: string) => void;
}

export interface TaskImage {
  readonly image: SandboxImage;
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  /** The image's own, where the task has none. */
  readonly healthcheck: Healthcheck | undefined;
  /** Containers beside it. */
  readonly services?: readonly SandboxService[];
}

/** @throws InputError naming file and line of what cannot be built */
export async function taskImage(
  environment: EnvironmentSource,
  { healthcheck, buildTimeoutMs, workdir: ownWorkdir }: EnvironmentSettings,
  imageServices: ImageServices,
): Promise<TaskImage> {
  const { builder, onProgress } = imageServices;
  if (
    builder.usesHostPrograms &&
    environment.kind === "dockerfile" &&
    isHostDockerfile(environment.dockerfile)
  ) {
    const { files, workdir, env } = readHostDockerfile(environment.dockerfile, environment.folder);
    return { image: { kind: "host", files }, workdir: ownWorkdir ?? workdir, env, healthcheck };
  }
  const compose =
    environment.kind === "compose" ? readComposeFile(environment.composeFile, process.env) : undefined;
  const built = await builder.build({
    source: sourceOf(environment, compose?.main.build),
    timeoutMs: buildTimeoutMs,
    ...(onProgress && { onProgress }),
  });
  const workdir = ownWorkdir ?? built.workdir;
  return {
    image: { ...built.image, files: [...built.image.files, ...uploads(environment, workdir)] },
    workdir,
    env: { ...built.env, ...compose?.main.env },
    healthcheck: healthcheck ?? built.healthcheck,
    ...(compose !== undefined &&
      compose.services.length > 0 && {
        services: await buildServices(compose.services, buildTimeoutMs, imageServices),
      }),
  };
}

function sourceOf(
  environment: EnvironmentSource,
  ownBuild: ComposeBuild | undefined,
): BuildRequest["source"] {
  if (ownBuild !== undefined) return { kind: "dockerfile", ...ownBuild };
  const { dockerfile, folder } = environment;
  const file = dockerfile === undefined || folder === undefined ? undefined : { dockerfile, context: folder };
  if (environment.kind === "image")
    return { kind: "image", name: environment.image, ...(file && { otherwise: file }) };
  if (file === undefined) throw new Error("a task without image has a Dockerfile");
  return { kind: "dockerfile", ...file };
}

/** Harbor puts the files of a folder that builds nothing into the working directory. */
function uploads(environment: EnvironmentSource, workdir: string): readonly SandboxFile[] {
  if (environment.kind !== "image" || !environment.uploadsFolder || environment.folder === undefined)
    return [];
  return [{ from: environment.folder, to: workdir }];
}
