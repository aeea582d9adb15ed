// The kinds of sandboxes that this machine can make, and the provider of each.
import type { SandboxProvider } from "./sandbox.ts";

export const SANDBOX_KINDS = ["bubblewrap", "docker"] as const;
export type SandboxKind = (typeof SANDBOX_KINDS)[number];

/** @throws InputError when this machine cannot make such sandboxes, with what would allow it */
export async function openSandboxes(kind: SandboxKind): Promise<SandboxProvider> {
  if (kind === "docker") return (await import("./docker/provider.ts")).createDockerProvider();
  return (await import("./bubblewrap/provider.ts")).createBubblewrapProvider();
}
