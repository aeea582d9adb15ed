// What happens in a new container before anybody works in it: folders, the spec's files, the image's entry point and its
// health check. In two parts, because what the second one changes already counts as the sandbox's.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { InputError } from "../failure/errors.ts";
import type { ContainerImage } from "../sandbox/container-image.ts";
import type { Lease, SandboxSpec } from "../sandbox/sandbox.ts";
import { packFiles } from "../sandbox/tar.ts";
import { readTarEntries } from "../sandbox/tar-entries.ts";
import type { DaemonClient } from "./client.ts";
import type { DaemonSandbox } from "./daemon-sandbox.ts";
import { describePaths } from "./describe-paths.ts";
import { HOLD_WORDS } from "./toolkit.ts";

/** What a Harbor task expects to find, whatever the image. */
const FOLDERS = ["/tmp", "/logs/agent", "/logs/artifacts", "/logs/verifier"];
/** An entry point that neither runs its command nor ends serves something by then. */
const ENTRY_WAIT_MS = 10_000;
const OUTPUT_BYTES = 4096;

/** What every command starts with, unless image, spec or command say otherwise: as Docker has it. */
export const BASE_ENV = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" } as const;

/** Between looks at the health of something that has just been started. */
const HEALTH_LOOK_MS = 200;

export interface SetUpPlan {
  readonly spec: SandboxSpec;
  readonly image: ContainerImage;
  readonly lease: Lease;
  /** Size limit of one file; the container's own when not given. */
  readonly fileLimitBytes?: number;
  /** JSON of a `Listing`: what the image holds, where that is known. */
  readonly listing?: Uint8Array;
}

/**
 * First: folders, deadline, and the spec's files. From then on changes count.
 *
 * @throws InputError when image and spec do not go together
 */
export async function placeSandbox(
  { client, sandbox }: { readonly client: DaemonClient; readonly sandbox: DaemonSandbox },
  { spec, image, lease, fileLimitBytes, listing }: SetUpPlan,
): Promise<void> {
  const folders = [...FOLDERS, image.workdir, spec.workdir];
  const existing = await describePaths(client, folders.flatMap(pathsTo));
  const { value } = await client.call({
    ...{ op: "open", deadlineMs: lease.deadlineMs, made: folders },
    ...(fileLimitBytes === undefined ? {} : { fileLimitBytes }),
  });
  if (value.refused !== undefined) throw unusable(image, value.refused);
  const files = await placeFiles(sandbox, spec);
  const made = folders.flatMap(pathsTo).filter(path => !existing.has(path));
  const marked = await client.call({ op: "mark", own: [...new Set([...made, ...files])] }, listing);
  if (marked.value.refused !== undefined) throw unusable(image, marked.value.refused);
}

/** Then: the image's entry point and its health check. What they change is a change. @throws InputError when they fail */
export async function startImage(
  client: DaemonClient,
  { spec, image }: Pick<SetUpPlan, "spec" | "image">,
): Promise<void> {
  await runEntryPoint(client, spec, image);
  await awaitHealth(client, spec, image);
}

/** A path and those above it. */
function pathsTo(path: string): readonly string[] {
  const names = path.split("/").filter(name => name !== "" && name !== ".");
  return names.map((_, index) => `/${names.slice(0, index + 1).join("/")}`);
}

/** @returns paths of the files, and of the folders above them that are their own */
async function placeFiles(
  sandbox: DaemonSandbox,
  { image: { files } }: SandboxSpec,
): Promise<readonly string[]> {
  if (files.length === 0) return [];
  const tar = await packFiles(files);
  const result = await sandbox.upload(tar, "/");
  if ("unpacked" in result) return readTarEntries(tar).map(({ path }) => `/${path}`);
  throw new InputError({
    what: `files of the task cannot be placed in its sandbox: ${result.refused}`,
    where: files.map(file => file.to).join(", "),
    expected: "folders that can be written, and room for the files (diskBytes)",
    fix: "copy them elsewhere, or raise the task's storage",
  });
}

/** With a command that waits, as `docker run IMAGE sleep infinity` does: some entry points end by running it. */
async function runEntryPoint(client: DaemonClient, spec: SandboxSpec, image: ContainerImage): Promise<void> {
  if (image.entrypoint.length === 0) return;
  const requestId = "entry point of the image";
  const running = client.call({
    ...{ op: "exec", requestId, argv: [...image.entrypoint, ...HOLD_WORDS], ...imageContext(spec, image) },
    ...{ outputLimitBytes: OUTPUT_BYTES, isKept: true },
  });
  running.catch(() => undefined); // it lives as long as the sandbox, and goes with it
  const awaited = { requestId, argv: [...HOLD_WORDS], limitMs: ENTRY_WAIT_MS };
  const { value } = await client.call({ op: "await-process", ...awaited });
  if (value.state !== "ended") return;
  const { value: result, body } = await running;
  if (result.end.kind === "exited" && result.end.exitCode === 0) return;
  throw new InputError({
    what: `the image's entry point fails: ${JSON.stringify(result.end)}`,
    where: describe(spec),
    expected: "one that runs the command it is given, or goes on running",
    fix: `see what it says: ${Buffer.from(body).toString("utf8").trim()}`,
  });
}

async function awaitHealth(client: DaemonClient, spec: SandboxSpec, image: ContainerImage): Promise<void> {
  const { health } = image;
  if (health === undefined) return;
  for (const until = performance.now() + health.patienceMs; ; await sleep(HEALTH_LOOK_MS)) {
    const { value, body } = await client.call({
      ...{ op: "exec", requestId: randomUUID(), argv: [...health.argv], ...imageContext(spec, image) },
      ...{ limitMs: health.timeoutMs, outputLimitBytes: OUTPUT_BYTES, isKept: false },
    });
    if (value.end.kind === "exited" && value.end.exitCode === 0) return;
    if (performance.now() < until) continue;
    throw new InputError({
      what: `the image's health check does not pass: ${JSON.stringify(value.end)}`,
      where: describe(spec),
      expected: `success within ${Math.round(health.patienceMs / 1000)} s`,
      fix: `see what it says: ${Buffer.from(body).toString("utf8").trim()}`,
    });
  }
}

/** As the image's author meant them: its own folder, variables and user. */
function imageContext(spec: SandboxSpec, { workdir, env, user }: ContainerImage) {
  const owner = spec.user ?? user;
  return {
    cwd: workdir,
    env: { ...BASE_ENV, ...env, ...spec.env },
    ...(owner === undefined ? {} : { user: owner }),
  };
}

export function unusable(image: ContainerImage, reason: string): InputError {
  return new InputError({
    what: `the image cannot be used: ${reason}`,
    where: image.id,
    expected: "a root file system in which folders can be made",
    fix: "build it again",
  });
}

function describe({ image }: SandboxSpec): string {
  return image.kind === "docker" ? image.reference : image.kind;
}
