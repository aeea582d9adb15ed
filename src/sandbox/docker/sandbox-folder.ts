// What a driver keeps on this machine about each of its sandboxes, so that another can take it over or end it: one folder
// per sandbox, with the way in and a record.
import { createHash, randomBytes } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { makeFolders } from "../../files/make-folders.ts";
import { DockerImageSpec, RecordedSpec } from "../recorded-spec.ts";
import type { Lease } from "../sandbox.ts";

const Text = z.string();
const RECORD = "record.json";
const OWNER = "owner.json";

const Service = z.strictObject({
  name: Text,
  reference: Text,
  entrypoint: z.array(Text).readonly().optional(),
  command: z.array(Text).readonly().optional(),
  workdir: Text.optional(),
  user: Text.optional(),
  healthcheck: z
    .strictObject({
      test: z.array(Text).readonly(),
      intervalMs: z.number().optional(),
      timeoutMs: z.number().optional(),
      startPeriodMs: z.number().optional(),
      retries: z.number().optional(),
    })
    .optional(),
  env: z.record(Text, Text),
  after: z
    .array(
      z.strictObject({
        service: Text,
        condition: z.enum(["started", "healthy", "completed", "ready"]),
      }),
    )
    .readonly(),
  memoryBytes: z.number().optional(),
  cpus: z.number().optional(),
});

/** Read by whoever takes over; the file is ours, and what it says about the spec came from us. */
export const SandboxRecord = z.strictObject({
  lease: z.strictObject({ id: Text, generation: z.int(), deadlineMs: z.number() }),
  container: Text,
  /** The folder with the way in. */
  listener: Text,
  token: z.string().regex(/^[0-9a-f]{64}$/),
  /** As of `formatProcess`. */
  driver: Text,
  spec: RecordedSpec.extend({
    image: DockerImageSpec,
    services: z.array(Service).readonly().optional(),
  }),
  imageEnv: z.record(Text, Text),
  imageUser: Text.optional(),
  /** Its set-up has come to its end. */
  isReady: z.boolean(),
  /** How often the machine's kernel had killed for want of memory when it was made. */
  killsBefore: z.number(),
});
export type SandboxRecord = z.infer<typeof SandboxRecord>;

export interface SandboxFolder {
  /** Name of the container and of its folder. */
  readonly name: string;
  readonly path: string;
}

/** Ids may hold anything, slashes included. */
export function sandboxFolder(
  parent: string,
  { id, generation }: Pick<Lease, "id" | "generation">,
): SandboxFolder {
  const name = `t1-${createHash("sha256").update(id).digest("hex").slice(0, 24)}-${generation}`;
  return { name, path: join(parent, name) };
}

/** Whose it is, from the moment on at which there is a folder. */
const Owner = z.strictObject({
  /** As of `formatProcess`. */
  driver: Text,
  deadlineMs: z.number(),
});
export type Owner = z.infer<typeof Owner>;

/**
 * Root inside may be another user here and has to pass to the socket. Others on this machine can pass too, but not list the
 * folder, so that they find no socket at which they could play the daemon.
 *
 * @returns the folder that is mounted into the sandbox and holds nothing but the socket
 */
export function makeListenerFolder(
  { path }: SandboxFolder,
  owner: Owner,
  listener = join(path, randomBytes(8).toString("hex")),
): string {
  makeFolders(path);
  writeFileSync(join(path, OWNER), JSON.stringify(owner), { mode: 0o600 });
  makeFolders(listener);
  chmodSync(path, 0o711);
  chmodSync(listener, 0o755);
  return listener;
}

export function writeRecord({ path }: SandboxFolder, record: SandboxRecord): void {
  const aside = join(path, `record-${process.pid}`);
  writeFileSync(aside, JSON.stringify(record), { mode: 0o600 });
  renameSync(aside, join(path, RECORD));
}

/** @returns the path of a hosts file (hosts(5)) in which the names stand for the loopback */
export function writeHosts(folder: string, names: readonly string[]): string {
  const path = join(folder, "hosts");
  writeFileSync(path, ["localhost", ...names].map(name => `127.0.0.1 ${name}\n`).join(""), { mode: 0o644 });
  return path;
}

/** @returns undefined when there is none, or none that we wrote */
export function readRecord({ path }: Pick<SandboxFolder, "path">): SandboxRecord | undefined {
  return readFile(join(path, RECORD), SandboxRecord);
}

/** As the record says, or before there is one, whoever made the folder. */
export function readOwner(folder: Pick<SandboxFolder, "path">): Owner | undefined {
  const record = readRecord(folder);
  if (record === undefined) return readFile(join(folder.path, OWNER), Owner);
  return { driver: record.driver, deadlineMs: record.lease.deadlineMs };
}

function readFile<Content>(path: string, schema: z.ZodType<Content>): Content | undefined {
  try {
    return schema.safeParse(JSON.parse(readFileSync(path, "utf8"))).data;
  } catch {
    return undefined;
  }
}

export function removeSandboxFolder({ path }: Pick<SandboxFolder, "path">): void {
  rmSync(path, { recursive: true, force: true });
}

export function listSandboxFolders(parent: string): readonly string[] {
  return readdirSync(parent).map(name => join(parent, name));
}
