// The services of a task's docker-compose.yaml, with images that the engine has.
import type { SandboxService, ServiceCondition } from "../sandbox/sandbox.ts";
import type { ComposeService, Dependency } from "../task/compose-file.ts";
import type { ImageServices } from "./task-image.ts";

const CONDITIONS = {
  service_started: "started",
  service_healthy: "healthy",
  service_completed_successfully: "completed",
} as const satisfies Record<Dependency["condition"], ServiceCondition["condition"]>;

/** @throws InputError naming file and line of what cannot be built */
export async function buildServices(
  services: readonly ComposeService[],
  timeoutMs: number,
  { builder, onProgress }: Pick<ImageServices, "builder" | "onProgress">,
): Promise<readonly SandboxService[]> {
  const built: SandboxService[] = [];
  for (const { source, dependsOn, ...service } of services) {
    const { image } = await builder.build({
      source: source.kind === "image" ? source : { ...source, kind: "dockerfile" },
      timeoutMs,
      ...(onProgress && { onProgress }),
    });
    if (image.kind !== "docker") throw new Error("a builder that has services makes images of an engine");
    const after = dependsOn.map(({ service, condition }) => ({ service, condition: CONDITIONS[condition] }));
    built.push({ ...service, reference: image.reference, after });
  }
  return built;
}
