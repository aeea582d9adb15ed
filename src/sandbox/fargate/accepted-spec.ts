// Refuses sandbox specifications that a Fargate task cannot keep.
import { InputError } from "../../failure/errors.ts";
import type { SandboxSpec } from "../sandbox.ts";
import { DEFAULT_IMAGE } from "./fargate-image.ts";

/** @throws InputError */
export function assertNetwork({ network }: SandboxSpec, networkedGroups: readonly string[]): void {
  if (network === "none" || (network === "public" && networkedGroups.length > 0)) return;
  throw new InputError({
    what: `a sandbox of this deployment has no network ${JSON.stringify(network)}`,
    where: "specification of a sandbox",
    expected: "network none: its subnets have no way out",
    fix: "bake what the task downloads into its image, deploy with network.egress, or leave it out of the pool",
  });
}

/** Under which name its image was prepared. @throws InputError */
export function referenceOf({ image }: SandboxSpec): string {
  switch (image.kind) {
    case "docker":
      return image.reference;
    case "host":
      return DEFAULT_IMAGE;
    case "root":
      throw new InputError({
        what: "Fargate cannot make a sandbox of a folder of this machine",
        where: image.folder,
        expected: "an image that the prepare stage has built",
        fix: "use the bubblewrap provider",
      });
    default:
      return image satisfies never;
  }
}
