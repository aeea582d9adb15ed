// The schema of a docker-compose.yaml, with the keys that we know. compose-file.ts gives them their meaning.
import { z } from "zod";

const Words = z.union([z.string(), z.array(z.coerce.string())]);
const Scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
export const Build = z.union([
  z.string(),
  z.strictObject({ context: z.string().default("."), dockerfile: z.string().optional() }),
]);
const Dependencies = z.union([
  z.array(z.string()),
  z.record(
    z.string(),
    z.object({
      condition: z
        .enum(["service_started", "service_healthy", "service_completed_successfully"])
        .default("service_started"),
    }),
  ),
]);
export const Service = z.strictObject({
  build: Build.optional(),
  image: z.string().optional(),
  command: Words.optional(),
  entrypoint: Words.optional(),
  environment: z.union([z.array(z.string()), z.record(z.string(), Scalar)]).default([]),
  working_dir: z.string().optional(),
  user: z.coerce.string().optional(),
  healthcheck: z
    .strictObject({
      test: Words.optional(),
      interval: z.string().optional(),
      timeout: z.string().optional(),
      start_period: z.string().optional(),
      start_interval: z.string().optional(),
      retries: z.coerce.number().int().optional(),
      disable: z.boolean().optional(),
    })
    .optional(),
  depends_on: Dependencies.default([]),
  volumes: z.array(z.unknown()).default([]),
  expose: z.array(z.coerce.string()).default([]),
  network_mode: z.string().optional(),
  deploy: z
    .object({
      resources: z
        .object({ limits: z.object({ cpus: Scalar, memory: Scalar }).partial().optional() })
        .optional(),
    })
    .optional(),
  // Keys that matter only on the author's own machine.
  ...Object.fromEntries(
    [
      ...["ports", "networks", "restart", "container_name", "hostname", "labels", "init", "tty"],
      ...["stdin_open", "stop_grace_period", "pull_policy"],
    ].map(key => [key, z.unknown().optional()]),
  ),
});
export type Service = z.infer<typeof Service>;
export const File = z.strictObject({
  version: z.unknown().optional(),
  name: z.unknown().optional(),
  services: z.record(z.string(), Service),
  networks: z.unknown().optional(),
});
