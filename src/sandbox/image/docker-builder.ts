// Builds images by a docker daemon. An image's tag is the hash of its Dockerfile and of all that its context holds, so
// that a name never means an older image.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import { BuildContext } from "./build-context.ts";
import { hashPlacements } from "./copy-instruction.ts";
import type { BuildRequest, BuiltImage, ImageBuilder } from "./image-builder.ts";
import type { ImageHealthcheck } from "./image-config.ts";
import type { Images } from "./images-file.ts";

const REPOSITORY = "t1-task";
/** Of a build that failed. */
const LAST_OUTPUT_CHARACTERS = 4000;
const INSPECT_MS = 60_000;

const Duration = z.number().optional();
const Inspected = z.object({
  Id: z.string(),
  Config: z.object({
    WorkingDir: z.string().nullish(),
    Healthcheck: z
      .object({
        Test: z.array(z.string()).nullish(),
        Interval: Duration,
        Timeout: Duration,
        StartPeriod: Duration,
        StartInterval: Duration,
        Retries: z.number().optional(),
      })
      .nullish(),
  }),
});

/** @throws Failure SandboxUnavailable from `build` when no daemon answers */
export function createDockerBuilder({ build: { network, env } }: Pick<Images, "build">): ImageBuilder {
  return {
    usesHostPrograms: false,
    hasUsers: true,
    build: async request => {
      const { source, onProgress } = request;
      if (source.kind === "image") {
        if ((await inspect(source.name)) === undefined) {
          onProgress?.(`pulling ${source.name}`);
          await docker(["pull", "--quiet", source.name], request, source.name);
        }
        return builtImage(source.name);
      }
      const reference = `${REPOSITORY}:${await hashContext(source, network)}`;
      if ((await inspect(reference)) === undefined) {
        onProgress?.(`${source.dockerfile}: building ${reference}`);
        const variables = Object.keys(env).flatMap(name => ["--build-arg", name]);
        const words = ["--network", network === "host" ? "host" : "none", ...variables, "--tag", reference];
        await docker(
          ["build", "--file", source.dockerfile, ...words, source.context],
          request,
          source.dockerfile,
          env,
        );
      }
      return builtImage(reference);
    },
  };
}

async function hashContext(
  { dockerfile, context }: { readonly dockerfile: string; readonly context: string },
  network: string,
): Promise<string> {
  const entries = [...new BuildContext(context, dockerfile).below("")].flatMap(from =>
    from.kind === "other" ? [] : [{ name: from.path, mode: from.mode, from }],
  );
  return createHash("sha256")
    .update(JSON.stringify([readFileSync(dockerfile, "utf8"), network]))
    .update(await hashPlacements([{ to: "/", isFile: false, entries }]))
    .digest("hex")
    .slice(0, 32);
}

async function builtImage(reference: string): Promise<BuiltImage> {
  const found = await inspect(reference);
  if (found === undefined)
    throw new Failure("SandboxUnavailable", `the image ${reference} is gone`, { retryable: true });
  const { Id, Config } = found;
  return {
    image: { kind: "docker", reference, files: [] },
    workdir: Config.WorkingDir || "/",
    env: {},
    healthcheck: healthcheckOf(Config.Healthcheck ?? undefined),
    hash: Id,
  };
}

/** Docker counts in nanoseconds, and leaves out what was not said. */
function healthcheckOf(
  check: NonNullable<z.infer<typeof Inspected>["Config"]["Healthcheck"]> | undefined,
): ImageHealthcheck | undefined {
  const [kind, ...words] = check?.Test ?? [];
  if (check === undefined || (kind !== "CMD" && kind !== "CMD-SHELL")) return undefined;
  const ms = (value: number | undefined, otherwise: number): number => (value ? value / 1e6 : otherwise);
  return {
    command:
      kind === "CMD-SHELL"
        ? words.join(" ")
        : words.map(word => `'${word.replaceAll("'", "'\\''")}'`).join(" "),
    intervalMs: ms(check.Interval, 30_000),
    timeoutMs: ms(check.Timeout, 30_000),
    startPeriodMs: ms(check.StartPeriod, 0),
    startIntervalMs: ms(check.StartInterval, 5000),
    retries: check.Retries || 3,
  };
}

async function inspect(reference: string): Promise<z.infer<typeof Inspected> | undefined> {
  const { code, output } = await run(["image", "inspect", reference], { timeoutMs: INSPECT_MS });
  if (code === 0) return z.array(Inspected).parse(JSON.parse(output))[0];
  if (/no such image/i.test(output)) return undefined;
  throw unavailable(output);
}

/** @throws InputError with its last output; Failure when no daemon answers */
async function docker(
  words: readonly string[],
  { timeoutMs, signal }: Pick<BuildRequest, "timeoutMs" | "signal">,
  where: string,
  env: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { code, output } = await run(words, { timeoutMs, env, ...(signal && { signal }) });
  if (code === 0) return;
  if (/cannot connect to the docker daemon|permission denied.*docker/i.test(output))
    throw unavailable(output);
  signal?.throwIfAborted();
  throw new InputError({
    what: `docker ${words[0]} ${code === undefined ? `was not done within ${timeoutMs / 1000} s` : `ended with exit code ${code}`}`,
    where,
    expected: `an image; its last output was\n${output.slice(-LAST_OUTPUT_CHARACTERS).trim()}`,
    fix: "change the Dockerfile, or the name of the image",
  });
}

function unavailable(output: string): Failure {
  return new Failure("SandboxUnavailable", `docker does not answer: ${output.trim().slice(-500)}`, {
    retryable: true,
  });
}

interface RunOptions {
  readonly timeoutMs: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** @returns no code when it was ended by the time limit or the signal */
function run(
  words: readonly string[],
  { timeoutMs, env = {}, signal }: RunOptions,
): Promise<{ readonly code: number | undefined; readonly output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn("docker", words, {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      ...(signal && { signal }),
    });
    let output = "";
    const take = (chunk: string): void => {
      output = (output + chunk).slice(-(1 << 20));
    };
    child.stdout.setEncoding("utf8").on("data", take);
    child.stderr.setEncoding("utf8").on("data", take);
    child.once("error", error => {
      if (signal?.aborted) resolve({ code: undefined, output });
      else reject(unavailable(`cannot run docker: ${error.message}`));
    });
    child.once("close", code => resolve({ code: code ?? undefined, output }));
  });
}
