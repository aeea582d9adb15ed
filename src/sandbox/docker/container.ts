// The container of one sandbox: how it is confined, and why it ended.
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import { DAEMON_ENV, daemonWords, LISTENER_MOUNT, TOOLKIT_MOUNT } from "../../sandboxd/toolkit.ts";
import type { Lease, SandboxSpec } from "../sandbox.ts";
import { complaintOf, type Engine } from "./engine.ts";
import { writeHosts } from "./sandbox-folder.ts";

/** Names of labels, by which any driver finds what another left. */
export const LABEL = {
  id: "t1.lease.id",
  generation: "t1.lease.generation",
  deadline: "t1.lease.deadline",
  folder: "t1.folder",
  driver: "t1.driver",
} as const;

/** Enough for any build; a fork bomb ends there. */
const PROCESS_LIMIT = 2048;
const REMOVALS = 6;
const REMOVAL_PAUSE_MS = 500;
/** Docker's own default, written out; counted as memory. */
const SHARED_MEMORY_BYTES = 64 << 20;

/**
 * Docker's default set without those that reach beyond the files and processes of a sandbox: mknod, net_raw, setpcap,
 * setfcap, audit_write. The same as bubblewrap's commands keep.
 * Source: https://docs.docker.com/engine/containers/run/#runtime-privilege-and-linux-capabilities
 */
const CAPABILITIES = [
  ...["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"],
  ...["NET_BIND_SERVICE", "SYS_CHROOT"],
];

/** By which the daemon closes the link-local network before it lets go of them (link-local.ts). No command has them. */
const CLOSING_CAPABILITIES = ["NET_ADMIN", "SETPCAP"];

export interface ContainerPlan {
  readonly name: string;
  readonly imageId: string;
  readonly spec: Pick<SandboxSpec, "network" | "memoryBytes" | "cpus" | "diskBytes" | "services">;
  readonly lease: Lease;
  readonly toolkit: string;
  /** The sandbox's folder on this machine, and below it the one with the way to the driver. */
  readonly folder: string;
  readonly listenerFolder: string;
  readonly driver: string;
  readonly joined?: JoinedNetwork | undefined;
}

/** The network of another container, and the names that stand for its loopback. */
export interface JoinedNetwork {
  readonly container: string;
  readonly names: readonly string[];
}

const Created = z.object({ Id: z.string().min(1) });

/** @returns undefined when there is a container of this name already */
export async function createContainer(engine: Engine, plan: ContainerPlan): Promise<string | undefined> {
  return createNamed(engine, plan.name, containerOptions(engine, plan), complaint =>
    refusal(plan, complaint),
  );
}

/** @returns undefined when there is a container of this name already */
export async function createNamed(
  engine: Engine,
  name: string,
  options: { readonly Image: string },
  refuse: (complaint: string) => Error = complaint => refusedContainer(complaint, options.Image),
): Promise<string | undefined> {
  const answer = await engine.call("POST", `/containers/create?name=${name}`, options);
  if (answer.status === 409) return undefined;
  const created = Created.safeParse(answer.value);
  if (answer.status === 201 && created.success) return created.data.Id;
  throw refuse(complaintOf(answer));
}

export async function startContainer(engine: Engine, id: string, plan: ContainerPlan): Promise<void> {
  const answer = await engine.call("POST", `/containers/${id}/start`);
  if (answer.status >= 300 && answer.status !== 304) throw refusal(plan, complaintOf(answer));
}

/**
 * One that is gone already is no error, nor one that another driver is removing. A busy machine takes long to end a
 * container, and the engine gives up sooner than that; asking again does no harm.
 *
 * @throws Failure SandboxUnavailable when it cannot be removed for long
 */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const answer = await engine.call("DELETE", `/containers/${id}?force=true&v=true`);
      if (answer.status < 300 || answer.status === 404 || answer.status === 409) return;
      throw new Failure("SandboxUnavailable", `container ${id} cannot be removed: ${complaintOf(answer)}`, {
        retryable: true,
      });
    } catch (error) {
      if (attempt === REMOVALS) throw error;
      await sleep(attempt * REMOVAL_PAUSE_MS);
    }
  }
}

/** Labels by which any driver finds the container and its owner. */
export function labelsOf({ lease, folder, driver }: ContainerPlan): Readonly<Record<string, string>> {
  return {
    [LABEL.id]: lease.id,
    [LABEL.generation]: `${lease.generation}`,
    [LABEL.deadline]: `${lease.deadlineMs}`,
    [LABEL.folder]: folder,
    [LABEL.driver]: driver,
  };
}

/** Limits of every container of a task. */
export function confinement({
  memoryBytes,
  cpus,
  diskBytes,
}: {
  readonly memoryBytes?: number | undefined;
  readonly cpus?: number | undefined;
  readonly diskBytes: number;
}) {
  return {
    CapDrop: ["ALL"],
    CapAdd: CAPABILITIES,
    SecurityOpt: ["no-new-privileges:true"],
    PidsLimit: PROCESS_LIMIT,
    ShmSize: SHARED_MEMORY_BYTES,
    // Most storage drivers have no limit for all files together; this one holds everywhere, for each.
    Ulimits: [
      { Name: "fsize", Soft: diskBytes, Hard: diskBytes },
      { Name: "core", Soft: 0, Hard: 0 },
    ],
    ...(memoryBytes === undefined ? {} : { Memory: memoryBytes, MemorySwap: memoryBytes }),
    ...(cpus === undefined ? {} : { NanoCpus: Math.round(cpus * 1e9) }),
    LogConfig: { Type: "json-file", Config: { "max-size": "1m", "max-file": "1" } },
    RestartPolicy: { Name: "no" },
    AutoRemove: false, // why it ended would go with it
  };
}

function containerOptions(engine: Engine, plan: ContainerPlan) {
  const { imageId, spec, toolkit, folder, listenerFolder, joined } = plan;
  // Whoever joins the network finds it as it was made.
  const isApart = spec.network === "public" && joined === undefined;
  const own = joined === undefined ? ownNetwork(spec) : joinNetwork(engine, joined, folder);
  return {
    Image: imageId,
    ...(joined === undefined && { Hostname: "sandbox" }),
    User: "0:0", // commands become who the image or the task says
    Entrypoint: daemonWords(...(isApart ? ["apart"] : []), "connect", `${LISTENER_MOUNT}/s`),
    Cmd: [],
    Env: Object.entries(DAEMON_ENV).map(([name, value]) => `${name}=${value}`),
    WorkingDir: "/",
    Healthcheck: { Test: ["NONE"] }, // the driver waits for it once, and it does not come into an episode
    Labels: labelsOf(plan),
    HostConfig: {
      ...own,
      Mounts: [bind(toolkit, TOOLKIT_MOUNT), bind(listenerFolder, LISTENER_MOUNT), ...own.Mounts],
      Init: false, // the daemon is process 1, which nothing inside can kill
      ...confinement(spec),
      ...(isApart && { CapAdd: [...CAPABILITIES, ...CLOSING_CAPABILITIES] }),
    },
  };
}

/** No engine takes names for a container on another's network; with docker they come along, with podman by a file. */
export function joinNetwork(
  { isPodman }: Engine,
  { container, names }: JoinedNetwork,
  folder: string,
): { readonly NetworkMode: string; readonly Mounts: readonly Mount[] } {
  const Mounts = !isPodman || names.length === 0 ? [] : [bind(writeHosts(folder, names), "/etc/hosts")];
  return { NetworkMode: `container:${container}`, Mounts };
}

function ownNetwork({ network, services = [] }: ContainerPlan["spec"]) {
  return {
    NetworkMode: network === "public" ? "bridge" : network,
    Mounts: [],
    ...(services.length > 0 && { ExtraHosts: services.map(({ name }) => `${name}:127.0.0.1`) }),
  };
}

interface Mount {
  readonly Type: "bind";
  readonly Source: string;
  readonly Target: string;
  readonly ReadOnly: boolean;
}

function bind(Source: string, Target: string): Mount {
  return { Type: "bind", Source, Target, ReadOnly: true };
}

/** The engine cannot make this container; another one perhaps. */
function refusal({ spec, imageId }: ContainerPlan, complaint: string): Error {
  if (spec.network === "public" && /network/i.test(complaint)) {
    return new InputError({
      what: `the container engine has no network for a sandbox: ${complaint}`,
      where: "network of the task",
      expected: 'an engine with its usual network "bridge"',
      fix: "start the engine with a bridge, or take the network from the task",
    });
  }
  return refusedContainer(complaint, imageId);
}

function refusedContainer(complaint: string, image: string): InputError {
  return new InputError({
    what: `the container engine refuses to make a sandbox: ${complaint}`,
    where: image,
    expected: "an image for this machine, and an engine that can limit memory, processors and processes",
    fix: "see what it says",
  });
}
