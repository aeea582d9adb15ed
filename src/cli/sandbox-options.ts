// Where sandboxes come from: the option that chooses, and the provider that it means.
import { Option } from "commander";
import type { SandboxProvider } from "../sandbox/sandbox.ts";

const SANDBOX_KINDS = ["bubblewrap", "docker"] as const;
export type SandboxKind = (typeof SANDBOX_KINDS)[number];

export function sandboxesOption(): Option {
  return new Option(
    "--sandboxes <kind>",
    "what sandboxes are made by: bubblewrap, or the containers of docker or podman (DOCKER_HOST or CONTAINER_HOST name its socket)",
  )
    .choices(SANDBOX_KINDS)
    .default("bubblewrap")
    .env("T1_SANDBOXES");
}

/** @throws InputError when this machine cannot make such sandboxes, with what would allow it */
export async function openSandboxes(kind: SandboxKind): Promise<SandboxProvider> {
  if (kind === "docker") return (await import("../sandbox/docker/provider.ts")).createDockerProvider();
  return (await import("../sandbox/bubblewrap/provider.ts")).createBubblewrapProvider();
}
