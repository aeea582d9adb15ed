// The [environment] table of task.toml, for the agent's and for a separate verifier's environment, old spellings too.
import { z } from "zod";
import { LaxBoolean, LaxFinite, LaxInteger, LaxNumber } from "./lax.ts";
import { McpServer } from "./mcp-server.ts";
import { NETWORK_MODES, normalizeHost } from "./network.ts";
import { stripSpace } from "./strip-space.ts";

const OPERATING_SYSTEMS = ["linux", "windows"] as const;
export type OperatingSystem = (typeof OPERATING_SYSTEMS)[number];

const TPU_TOPOLOGY = /^[1-9]\d*(x[1-9]\d*)+$/;
const OLD_SIZE = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:E[+-]?\d+)?)\s*([GMK])$/;

/** MiB per unit of the old size spelling. */
const SIZE_UNIT_MIB: Readonly<Record<string, number>> = { G: 1024, M: 1, K: 1 / 1024 };

/** Old keys, with the keys in MiB that replaced them. */
const OLD_SIZES = [
  ["memory", "memory_mb"],
  ["storage", "storage_mb"],
] as const;

export const AllowedHosts = z.array(
  z.string().transform((entry, context) => {
    const host = normalizeHost(entry);
    if (host !== undefined) return host;
    context.addIssue({
      code: "custom",
      message: "a host name, '*.' and a host name, an IP address or a CIDR range (no scheme, port or path)",
    });
    return z.NEVER;
  }),
);

export const NetworkMode = z.enum(NETWORK_MODES);

export const EnvTable = z.record(z.string(), z.string());

export const HealthcheckToml = z.strictObject({
  command: z.string(),
  interval_sec: LaxNumber.default(5),
  timeout_sec: LaxNumber.default(30),
  start_period_sec: LaxNumber.default(0),
  start_interval_sec: LaxNumber.default(5),
  retries: LaxInteger.default(3),
});
export type HealthcheckToml = z.output<typeof HealthcheckToml>;

const Tpu = z.strictObject({
  type: z.string().min(1),
  topology: z
    .string()
    .transform(stripSpace)
    .pipe(z.string().regex(TPU_TOPOLOGY, { error: "dimensions such as 2x4 or 2x2x1" })),
});

export const EnvironmentToml = z.preprocess(
  replaceOldSizes,
  z
    .strictObject({
      network_mode: NetworkMode.optional(),
      allowed_hosts: AllowedHosts.optional(),
      build_timeout_sec: LaxNumber.default(600),
      docker_image: z.string().optional(),
      os: z
        .preprocess(
          value => (typeof value === "string" ? value.toLowerCase() : value),
          z.enum(OPERATING_SYSTEMS),
        )
        .optional(),
      cpus: LaxFinite.optional(),
      memory_mb: LaxInteger.optional(),
      storage_mb: LaxInteger.optional(),
      gpus: LaxInteger.optional(),
      gpu_types: z.array(z.string()).optional(),
      tpu: Tpu.optional(),
      mcp_servers: z.array(McpServer).default([]),
      env: EnvTable.default({}),
      skills_dir: z.string().optional(),
      healthcheck: HealthcheckToml.optional(),
      workdir: z.string().optional(),
      allow_internet: LaxBoolean.optional(),
    })
    .refine(
      ({ network_mode = "public", allowed_hosts = [] }) =>
        network_mode === "allowlist" || allowed_hosts.length === 0,
      { path: ["allowed_hosts"], error: 'no allowed_hosts unless network_mode = "allowlist"' },
    ),
);
export type EnvironmentToml = z.output<typeof EnvironmentToml>;

/** `memory = "2G"` means `memory_mb = 2048`. An old key without a text stays and counts as an unknown key. */
function replaceOldSizes(table: unknown, context: z.RefinementCtx): unknown {
  if (typeof table !== "object" || table === null || Array.isArray(table)) return table;
  const current: Record<string, unknown> = { ...table };
  for (const [oldKey, key] of OLD_SIZES) {
    const size = current[oldKey];
    if (typeof size !== "string") continue;
    delete current[oldKey];
    const sizeMib = parseOldSize(size);
    const given = current[key];
    if (sizeMib === undefined) {
      const message = `a size such as "512M" or "2G", or better: ${key} in MiB`;
      context.addIssue({ code: "custom", message, path: [oldKey] });
    } else if (given === undefined) {
      current[key] = sizeMib;
    } else if (typeof given === "string" || Number(given) !== sizeMib) {
      const message = `the same size as ${key}; better keep ${key} only`;
      context.addIssue({ code: "custom", message, path: [oldKey] });
    }
  }
  return current;
}

function parseOldSize(size: string): number | undefined {
  const [, number, unit] =
    OLD_SIZE.exec(
      stripSpace(size)
        .toUpperCase()
        .replaceAll(/(?<=\d)_(?=\d)/g, ""),
    ) ?? [];
  const unitMib = unit === undefined ? undefined : SIZE_UNIT_MIB[unit];
  if (number === undefined || unitMib === undefined) return undefined;
  const sizeMib = Math.trunc(Number(number) * unitMib);
  return Number.isFinite(sizeMib) ? sizeMib + 0 : undefined;
}
