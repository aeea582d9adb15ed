// What an image says about the containers made of it.
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import { complaintOf, type Engine } from "./engine.ts";

const NANOSECONDS = 1e6;

const Image = z.object({
  Id: z.string().min(1),
  Config: z
    .object({
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
    })
    .nullish(),
});

export interface DockerImage {
  /** Names the content: a reference may be given to another image tomorrow. */
  readonly id: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  readonly user: string | undefined;
  readonly entrypoint: readonly string[];
  readonly health: HealthCheck | undefined;
}

interface HealthCheck {
  readonly argv: readonly string[];
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** From the start until the sandbox counts as sick. */
  readonly patienceMs: number;
}

/** @throws InputError when the engine does not have it */
export async function inspectImage(engine: Engine, reference: string): Promise<DockerImage> {
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
  const { Id, Config } = image.data;
  return {
    id: Id,
    env: Object.fromEntries((Config?.Env ?? []).map(splitVariable)),
    workdir: Config?.WorkingDir || "/",
    user: Config?.User || undefined,
    entrypoint: Config?.Entrypoint ?? [],
    health: healthOf(Config?.Healthcheck),
  };
}

function splitVariable(variable: string): readonly [string, string] {
  const at = variable.indexOf("=");
  return at < 0 ? [variable, ""] : [variable.slice(0, at), variable.slice(at + 1)];
}

/** Defaults are Docker's (Dockerfile reference, HEALTHCHECK). */
function healthOf(
  check: NonNullable<z.infer<typeof Image>["Config"]>["Healthcheck"],
): HealthCheck | undefined {
  const [kind, ...words] = check?.Test ?? [];
  const argv = kind === "CMD" ? words : kind === "CMD-SHELL" ? ["/bin/sh", "-c", words.join(" ")] : [];
  if (argv.length === 0) return undefined;
  const intervalMs = (check?.Interval || 30e9) / NANOSECONDS;
  const timeoutMs = (check?.Timeout || 30e9) / NANOSECONDS;
  const retries = check?.Retries || 3;
  const patienceMs = (check?.StartPeriod ?? 0) / NANOSECONDS + retries * (intervalMs + timeoutMs);
  return { argv, intervalMs, timeoutMs, patienceMs };
}
