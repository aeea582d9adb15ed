// Reads from the engine what an image says about its containers.
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import { ContainerConfig, type ContainerImage, containerImage } from "../container-image.ts";
import { complaintOf, type Engine } from "./engine.ts";

const Image = z.object({ Id: z.string().min(1), Config: ContainerConfig.nullish() });

/** @throws InputError when the engine does not have it */
export async function inspectImage(engine: Engine, reference: string): Promise<ContainerImage> {
  const answer = await engine.call("GET", `/images/${encodeURIComponent(reference)}/json`);
  if (answer.status === 404 || answer.status === 400) {
    throw new InputError({
      what: "the container engine does not have the image",
      where: reference,
      expected: complaintOf(answer),
      fix: `docker pull ${reference}, or build it`,
    });
  }
  const image = Image.safeParse(answer.value);
  if (!image.success)
    throw new Failure("SandboxUnavailable", `the engine describes no image: ${image.error.message}`, {
      retryable: false,
    });
  return containerImage(image.data.Id, image.data.Config);
}
