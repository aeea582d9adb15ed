// Artifacts: files that leave the sandbox after the agent, with their places in the container and on the host.
import { z } from "zod";
import { stripSpace } from "./strip-space.ts";

/** The Compose service in which the agent works. */
export const MAIN_SERVICE = "main";

/** The name of a Compose service, in artifacts and in the verifier's collect hooks. */
export const ServiceName = z
  .string()
  .transform(stripSpace)
  .pipe(
    z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/, {
      error: "a service name of letters, digits, '.', '_' and '-' that begins with a letter or digit",
    }),
  );

const Source = z
  .string()
  .refine(source => !pathParts(source).includes(".."), { error: "a path in the container without '..'" });

const Destination = z
  .string()
  .refine(isInnerPath, { error: "a relative path with forward slashes and without '..'" })
  .refine(destination => destination.replace(/\/+$/, "") !== "manifest.json", {
    error: "a name other than manifest.json, which is the list of what was collected",
  })
  .transform(destination => (destination === "" ? undefined : destination));

/** A bare path in task.toml stands for `{ source = path }`. */
export const Artifact = z.preprocess(
  value => (typeof value === "string" ? { source: value } : value),
  z
    .strictObject({
      /** A path in the container; absolute when it is another service's. */
      source: Source,
      /** Relative to the folder of collected artifacts; without it the source's own path is used. */
      destination: Destination.optional(),
      /** Patterns as `tar --exclude` takes them. */
      exclude: z.array(z.string()).default([]),
      service: ServiceName.optional(),
    })
    .refine(
      ({ source, service }) =>
        service === undefined || service === MAIN_SERVICE || /^(\/|[A-Za-z]:[/\\])/.test(source),
      { path: ["source"], error: "an absolute path, because it lies in another service than main" },
    ),
);
export type Artifact = Readonly<z.output<typeof Artifact>>;

function isInnerPath(destination: string): boolean {
  if (destination === "") return true;
  const parts = pathParts(destination);
  return (
    parts.length > 0 && !parts.includes("..") && !destination.includes("\\") && !destination.startsWith("/")
  );
}

function pathParts(path: string): string[] {
  return path.split("/").filter(part => part !== "" && part !== ".");
}
