// Builds images by a docker daemon. An image's tag is the hash of its Dockerfile, of all that its context holds and of the
// images that it starts from, so that a name never means an older image.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import { BuildContext } from "../../image/build-context.ts";
import { hashPlacements } from "../../image/copy-instruction.ts";
import { parseDockerfile } from "../../image/dockerfile.ts";
import type { BuildRequest, BuiltImage, ImageBuilder } from "../../image/image-builder.ts";
import type { ImageHealthcheck } from "../../image/image-config.ts";
import type { Images } from "../../image/images-file.ts";
import { ContainerConfig, containerImage } from "../container-image.ts";
import { findEngineSocket } from "./engine.ts";

const REPOSITORY = "t1-task";
/** Last characters of a failed build's output that an error shows. */
const LAST_OUTPUT_CHARACTERS = 4000;
const INSPECT_MS = 60_000;

const Duration = z.number().optional();
const Inspected = z.object({
  Id: z.string(),
  Config: z.object({
    Env: ContainerConfig.shape.Env,
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

type Build = Pick<Images, "build">["build"];
type DockerfileSource = { readonly dockerfile: string; readonly context: string };

/** @throws Failure SandboxUnavailable from `build` when no daemon answers */
export function createDockerBuilder({ build }: Pick<Images, "build">): ImageBuilder {
  return {
    usesHostPrograms: false,
    hasUsers: true,
    hasServices: true,
    build: async request => {
      const { source } = request;
      return source.kind === "image" ? namedImage(source, build, request) : buildFile(source, build, request);
    },
  };
}

/** Pulled where the daemon does not have it, and built where it cannot be pulled and the task says how. */
async function namedImage(
  { name, otherwise }: { readonly name: string; readonly otherwise?: DockerfileSource },
  build: Build,
  request: BuildRequest,
): Promise<BuiltImage> {
  if ((await inspect(name)) !== undefined) return builtImage(name);
  request.onProgress?.(`pulling ${name}`);
  try {
    await docker(["pull", "--quiet", name], request, name);
  } catch (error) {
    if (otherwise === undefined || !(error instanceof InputError)) throw error;
    request.onProgress?.(`${name} cannot be pulled: its Dockerfile is built instead`);
    return buildFile(otherwise, build, request);
  }
  return builtImage(name);
}

async function buildFile(
  source: DockerfileSource,
  { network, env }: Build,
  request: BuildRequest,
): Promise<BuiltImage> {
  const reference = `${REPOSITORY}:${await hashContext(source, network)}`;
  if ((await inspect(reference)) === undefined) {
    request.onProgress?.(`${source.dockerfile}: building ${reference}`);
    const variables = Object.keys(env).flatMap(name => ["--build-arg", name]);
    const words = ["--network", network, ...variables, "--tag", reference];
    await docker(
      ["build", "--file", source.dockerfile, ...words, source.context],
      request,
      source.dockerfile,
      env,
    );
  }
  return builtImage(reference);
}

async function hashContext(
  { dockerfile, context }: { readonly dockerfile: string; readonly context: string },
  network: string,
): Promise<string> {
  const text = readFileSync(dockerfile, "utf8");
  const bases = await Promise.all(
    baseNames(text, dockerfile).map(async name => (await inspect(name))?.Id ?? name),
  );
  const entries = [...new BuildContext(context, dockerfile).below("")].flatMap(from =>
    from.kind === "other" ? [] : [{ name: from.path, mode: from.mode, from }],
  );
  return createHash("sha256")
    .update(JSON.stringify([text, network, bases]))
    .update(await hashPlacements([{ to: "/", isFile: false, entries }]))
    .digest("hex")
    .slice(0, 32);
}

/** Images that it starts from, which may be others tomorrow under the same names. */
function baseNames(text: string, file: string): readonly string[] {
  const { instructions } = parseDockerfile(text, file);
  const froms = instructions.filter(({ name }) => name === "FROM").map(from => from.text.split(/\s+/));
  const stages = new Set(froms.map(([, as, stage]) => (/^as$/i.test(as ?? "") ? stage : undefined)));
  const names = froms.flatMap(([name = ""]) => (stages.has(name) || name.includes("$") ? [] : [name]));
  return [...new Set(names)].filter(name => name !== "scratch");
}

async function builtImage(reference: string): Promise<BuiltImage> {
  const found = await inspect(reference);
  if (found === undefined)
    throw new Failure("SandboxUnavailable", `the image ${reference} is gone`, { retryable: true });
  const { Id, Config } = found;
  return {
    image: { kind: "docker", reference, files: [] },
    workdir: Config.WorkingDir || "/",
    env: containerImage(Id, { Env: Config.Env }).env,
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

/** The engine has an API for builds, but its own program knows ignore files, contexts and pulls. */
function cannotRun(cause: Error): InputError {
  return new InputError(
    {
      what: `images are built by the program docker, which cannot be run: ${cause.message}`,
      where: "PATH",
      expected: "docker; with podman's engine too",
      fix: "install docker-cli, or podman-docker",
    },
    { cause },
  );
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
    const socket = findEngineSocket();
    const child = spawn("docker", words, {
      env: { ...process.env, ...(socket !== undefined && { DOCKER_HOST: `unix://${socket}` }), ...env },
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
      else reject(cannotRun(error));
    });
    child.once("close", code => resolve({ code: code ?? undefined, output }));
  });
}
