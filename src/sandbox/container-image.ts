// What an image says about the containers made of it, in the words of the OCI image config that Docker prints.
import { z } from "zod";

const NANOSECONDS = 1e6;

/** The part of `docker image inspect`'s Config that a sandbox follows. */
export const ContainerConfig = z.object({
  Env: z.array(z.string()).nullish(),
  WorkingDir: z.string().nullish(),
  User: z.string().nullish(),
  Entrypoint: z.array(z.string()).nullish(),
  Healthcheck: z
    .object({
      Test: z.array(z.string()).nullish(),
      Interval: z.number().nullish(),
      Timeout: z.number().nullish(),
      Retries: z.number().nullish(),
      StartPeriod: z.number().nullish(),
    })
    .nullish(),
});
export type ContainerConfig = z.infer<typeof ContainerConfig>;

export interface ContainerImage {
  /** Names the content: a reference may be given to another image tomorrow. */
  readonly id: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly user: string | undefined;
  readonly entrypoint: readonly string[];
  readonly health: ContainerHealth | undefined;
}

interface ContainerHealth {
  readonly argv: readonly string[];
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** From the start until the sandbox counts as sick. */
  readonly patienceMs: number;
}

export function containerImage(id: string, config: ContainerConfig | null | undefined): ContainerImage {
  return {
    id,
    env: Object.fromEntries((config?.Env ?? []).map(splitVariable)),
    workdir: config?.WorkingDir || "/",
    user: config?.User || undefined,
    entrypoint: config?.Entrypoint ?? [],
    health: healthOf(config?.Healthcheck),
  };
}

function splitVariable(variable: string): readonly [string, string] {
  const at = variable.indexOf("=");
  return at < 0 ? [variable, ""] : [variable.slice(0, at), variable.slice(at + 1)];
}

/** Defaults are Docker's (Dockerfile reference, HEALTHCHECK). */
function healthOf(check: ContainerConfig["Healthcheck"]): ContainerHealth | undefined {
  const [kind, ...words] = check?.Test ?? [];
  const argv = kind === "CMD" ? words : kind === "CMD-SHELL" ? ["/bin/sh", "-c", words.join(" ")] : [];
  if (argv.length === 0) return undefined;
  const intervalMs = (check?.Interval || 30e9) / NANOSECONDS;
  const timeoutMs = (check?.Timeout || 30e9) / NANOSECONDS;
  const retries = check?.Retries || 3;
  const patienceMs = (check?.StartPeriod ?? 0) / NANOSECONDS + retries * (intervalMs + timeoutMs);
  return { argv, intervalMs, timeoutMs, patienceMs };
}
