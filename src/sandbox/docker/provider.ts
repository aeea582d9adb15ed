// Sandboxes in containers of docker or podman on this machine: real images, limits of memory and processors, a network
// where a task is allowed one. The engine is asked to make and remove them; commands go to their daemon directly.
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import { currentProcess, formatProcess, parseProcess, processState } from "../../store/process-identity.ts";
import { assertSpec } from "../assert-spec.ts";
import type { ContainerImage } from "../container-image.ts";
import { DaemonClient } from "../daemon/client.ts";
import { DaemonSandbox } from "../daemon/daemon-sandbox.ts";
import { describePaths } from "../daemon/describe-paths.ts";
import { type Difference, isOfEngine } from "../daemon/difference.ts";
import { DriverDoor } from "../daemon/driver-door.ts";
import { makeToken } from "../daemon/handshake.ts";
import { LeasedSandbox, lost, nameOf } from "../daemon/leased-sandbox.ts";
import { parseBody } from "../daemon/parse-body.ts";
import { type Described, Listing } from "../daemon/protocol.ts";
import { BASE_ENV, placeSandbox, startImage } from "../daemon/set-up.ts";
import { openToolkit } from "../daemon/toolkit.ts";
import { OwnSandboxes } from "../own-sandboxes.ts";
import { openRunFolder } from "../run-folder.ts";
import type { Lease, Sandbox, SandboxProvider, SandboxSpec } from "../sandbox.ts";
import { TokenBucket } from "../token-bucket.ts";
import {
  type ContainerPlan,
  createContainer,
  LABEL,
  removeContainer,
  startContainer,
  whyEnded,
} from "./container.ts";
import { Engine } from "./engine.ts";
import { compareFiles, type ImageEntry } from "./file-changes.ts";
import { inspectImage } from "./image.ts";
import {
  listSandboxFolders,
  makeDoorFolder,
  readRecord,
  removeSandboxFolder,
  type SandboxFolder,
  type SandboxRecord,
  sandboxFolder,
  writeRecord,
} from "./sandbox-folder.ts";
import { removeServices, SERVICE_LABEL, startServices } from "./services.ts";

/** About twice what an engine makes on two processors (docs/benchmarks.md), so that it is never buried. */
const CREATION = { perSecond: 10, burst: 16 };
const LISTING_LIFE_MS = 300_000;

export interface DockerOptions {
  /** Of docker or podman; found by itself when not given. */
  readonly socketPath?: string;
  /** Folder for the toolkit and for the way into each sandbox; the machine's folder for temporary files when not given. */
  readonly runParent?: string;
  readonly creation?: { readonly perSecond: number; readonly burst: number };
}

/** @throws InputError when no engine answers, or when this machine cannot make the toolkit */
export async function createDockerProvider(options: DockerOptions = {}): Promise<DockerProvider> {
  const engine = await Engine.open(options.socketPath);
  const runFolder = openRunFolder(options.runParent ?? tmpdir()).path;
  const folder = join(runFolder, "docker");
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const toolkit = openToolkit(join(runFolder, "toolkits"));
  return new DockerProvider({ engine, folder, toolkit, creation: options.creation ?? CREATION });
}

interface Place {
  readonly engine: Engine;
  readonly folder: string;
  readonly toolkit: string;
  readonly creation: { readonly perSecond: number; readonly burst: number };
}

const Containers = z.array(
  z.object({
    Id: z.string(),
    Labels: z.record(z.string(), z.string()).nullish(),
    Names: z.array(z.string()),
  }),
);

const EngineChanges = z.array(z.object({ Path: z.string(), Kind: z.int() })).nullable();

export class DockerProvider implements SandboxProvider {
  readonly name = "docker";
  readonly #place: Place;
  readonly #bucket: TokenBucket;
  readonly #sandboxes = new OwnSandboxes<LeasedSandbox>();
  readonly #listings = new Map<string, Promise<ReadonlyMap<string, ImageEntry>>>();

  constructor(place: Place) {
    this.#place = place;
    this.#bucket = new TokenBucket(place.creation);
  }

  /** The same lease and generation twice is the same sandbox. */
  async create(spec: SandboxSpec, lease: Lease): Promise<LeasedSandbox> {
    return this.#sandboxes.once(lease, () => this.#create(spec, lease, undefined));
  }

  async adopt(lease: Lease): Promise<Sandbox | undefined> {
    const known = this.#sandboxes.get(lease);
    if (known !== undefined) return known;
    const folder = sandboxFolder(this.#place.folder, lease);
    const record = readRecord(folder);
    if (record === undefined) return undefined;
    assertUnowned(record);
    const what = nameOf(record.lease);
    if ((await whyEnded(this.#place.engine, record.container, what)) !== undefined) return undefined;
    return this.#sandboxes.once(lease, () => this.#takeOver(folder, record));
  }

  /** What an image gives to its sandboxes where a task says nothing. @throws InputError when the engine has no such image */
  describeImage(reference: string): Promise<ContainerImage> {
    return inspectImage(this.#place.engine, reference);
  }

  async sweep(): Promise<readonly string[]> {
    const now = Date.now();
    const ended = await this.#sandboxes.endLate(now);
    for (const { Id, Labels } of await this.#leftContainers()) {
      const {
        [LABEL.id]: id,
        [LABEL.deadline]: deadline,
        [LABEL.folder]: path = "",
        ...labels
      } = Labels ?? {};
      if (
        id === undefined ||
        !isLeft(readRecord({ path })?.driver ?? labels[LABEL.driver], Number(deadline), now)
      )
        continue;
      await removeContainer(this.#place.engine, Id);
      if (labels[SERVICE_LABEL] !== undefined) continue; // gone with its sandbox
      if (path.startsWith(`${this.#place.folder}/`)) removeSandboxFolder({ path });
      ended.push(id);
    }
    this.#removeLeftFolders(now);
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#sandboxes.endAll();
    } finally {
      this.#place.engine.close();
    }
  }

  async #create(spec: SandboxSpec, lease: Lease, joined: string | undefined): Promise<LeasedSandbox> {
    assertSpec(spec);
    const { image: wanted, network } = spec;
    if (wanted.kind !== "docker") {
      throw new InputError({
        what: `docker cannot make a sandbox of an image of kind ${JSON.stringify(wanted.kind)}`,
        where: "specification of a sandbox",
        expected: "an image that the engine has",
        fix: "name one, or use the bubblewrap provider",
      });
    }
    if (!(lease.deadlineMs > Date.now())) throw lost(nameOf(lease), "its deadline passed before it was made");
    await this.#bucket.take();
    const { engine } = this.#place;
    const image = await inspectImage(engine, wanted.reference);
    const folder = sandboxFolder(this.#place.folder, lease);
    const plan = { ...this.#plan(folder, image.id, spec, lease), joined };
    const container = (await createContainer(engine, plan)) ?? (await this.#replace(folder, plan));
    if (typeof container !== "string") return container;
    const token = makeToken();
    const record: SandboxRecord = {
      ...{ lease, container, door: plan.doorFolder, imageId: image.id, token, driver: thisDriver() },
      spec: { ...spec, network, image: wanted, env: { ...spec.env } },
      imageEnv: { ...image.env },
      ...(image.user === undefined ? {} : { imageUser: image.user }),
      placed: [],
    };
    let door: DriverDoor | undefined;
    try {
      door = await this.#openDoor(record, { isGrant: true });
      writeRecord(folder, record);
      await startContainer(engine, container, plan);
      if (spec.services !== undefined) await startServices(engine, container, plan, spec.services);
      const connected = this.#connect(door, record);
      const placed = await placeSandbox(connected, { spec, image, lease });
      await startImage(connected.client, { spec, image });
      writeRecord(folder, { ...record, placed: [...placed] });
      return this.#sandbox(folder, record, { door, ...connected, placed });
    } catch (error) {
      door?.close();
      if (spec.services !== undefined) await removeServices(engine, plan.name).catch(() => undefined); // as swept
      await removeContainer(engine, container).finally(() => removeSandboxFolder(folder));
      throw error;
    }
  }

  /** A container of this lease is there: its driver died, or died while making it. */
  async #replace(folder: SandboxFolder, plan: ContainerPlan): Promise<LeasedSandbox | string> {
    const { engine } = this.#place;
    const record = readRecord(folder);
    if (record !== undefined) {
      assertUnowned(record);
      const what = nameOf(record.lease);
      // One whose set-up was not finished has no list of what was placed.
      if (record.placed.length > 0 && (await whyEnded(engine, record.container, what)) === undefined)
        return this.#takeOver(folder, record);
    }
    await removeServices(engine, folder.name);
    await removeContainer(engine, folder.name);
    removeSandboxFolder(folder);
    makeDoorFolder(folder, plan.doorFolder);
    const container = await createContainer(engine, plan);
    if (container !== undefined) return container;
    throw new Failure("SandboxUnavailable", `container ${folder.name} cannot be replaced`, {
      retryable: true,
    });
  }

  async #takeOver(folder: SandboxFolder, old: SandboxRecord): Promise<LeasedSandbox> {
    const record = { ...old, driver: thisDriver() };
    const door = await this.#openDoor(record, { isGrant: false });
    try {
      writeRecord(folder, record);
      const connected = this.#connect(door, record);
      await connected.client.call({ op: "status" });
      return this.#sandbox(folder, record, { door, ...connected, placed: new Map(record.placed) });
    } catch (error) {
      door.close();
      throw error;
    }
  }

  #openDoor(
    { door, token, container, lease }: SandboxRecord,
    { isGrant }: { readonly isGrant: boolean },
  ): Promise<DriverDoor> {
    const whyGone = () => whyEnded(this.#place.engine, container, nameOf(lease)).catch(() => undefined); // the engine is away: we wait
    return DriverDoor.open({ folder: door, token, isGrant, whyGone });
  }

  #connect(
    door: DriverDoor,
    { lease, spec, imageEnv, imageUser }: SandboxRecord,
  ): { readonly client: DaemonClient; readonly sandbox: DaemonSandbox } {
    const client = new DaemonClient(() => door.connect());
    const user = spec.user ?? imageUser;
    const env = { ...BASE_ENV, ...imageEnv, ...spec.env };
    return { client, sandbox: new DaemonSandbox(lease, client, { workdir: spec.workdir, env, user }) };
  }

  #sandbox(
    folder: SandboxFolder,
    { spec, lease, container, imageId }: SandboxRecord,
    connected: {
      readonly door: DriverDoor;
      readonly client: DaemonClient;
      readonly sandbox: DaemonSandbox;
      readonly placed: ReadonlyMap<string, Described>;
    },
  ): LeasedSandbox {
    const { client, sandbox, door, placed } = connected;
    return new LeasedSandbox(spec, lease, {
      ...{ client, sandbox },
      difference: () => this.#difference(container, client, { imageId, placed }),
      // Services and what they hold stay: the next one comes onto their network.
      createAnother: ({ services, ...another }, anotherLease) =>
        services === undefined
          ? this.create(another, anotherLease)
          : this.#sandboxes.once(anotherLease, () =>
              this.#create({ ...another, network: spec.network }, anotherLease, container),
            ),
      remove: async () => {
        door.close();
        if (spec.services !== undefined) await removeServices(this.#place.engine, folder.name);
        await removeContainer(this.#place.engine, container);
        removeSandboxFolder(folder);
        this.#sandboxes.forget(lease);
      },
    });
  }

  async #difference(
    container: string,
    client: DaemonClient,
    { imageId, placed }: { readonly imageId: string; readonly placed: ReadonlyMap<string, Described> },
  ): Promise<Difference> {
    const answer = await this.#place.engine.call("GET", `/containers/${container}/changes`);
    const listed = EngineChanges.safeParse(answer.value);
    if (answer.status !== 200 || !listed.success) {
      await client.call({ op: "status" }); // a sandbox that is lost says why
      throw new Failure("SandboxUnavailable", "the container engine does not list changes", {
        retryable: true,
      });
    }
    const changes = listed.data ?? [];
    const paths = [...new Set([...changes.map(({ Path }) => Path), ...placed.keys()])].filter(
      path => !isOfEngine(path),
    );
    const before = { image: await this.#listImage(imageId), placed };
    return compareFiles(changes, await describePaths(client, paths), before);
  }

  /** An image never changes, so it is looked at once: in a container of its own in which nothing else runs. */
  #listImage(imageId: string): Promise<ReadonlyMap<string, ImageEntry>> {
    const known = this.#listings.get(imageId);
    if (known !== undefined) return known;
    const listing = this.#readImage(imageId);
    this.#listings.set(imageId, listing);
    listing.catch(() => this.#listings.delete(imageId));
    return listing;
  }

  async #readImage(imageId: string): Promise<ReadonlyMap<string, ImageEntry>> {
    const { engine } = this.#place;
    const id = `listing of ${imageId} by ${thisDriver()}`;
    const lease = { id, generation: 1, deadlineMs: Date.now() + LISTING_LIFE_MS };
    const folder = sandboxFolder(this.#place.folder, lease);
    const plan = this.#plan(folder, imageId, { network: "none", diskBytes: 1 << 20 }, lease);
    const container = await createContainer(engine, plan);
    if (container === undefined)
      throw new Failure("SandboxUnavailable", `${folder.name} is there already`, { retryable: true });
    const whyGone = () => whyEnded(engine, container, nameOf(lease)).catch(() => undefined);
    const way = { folder: plan.doorFolder, token: makeToken(), isGrant: true, whyGone };
    const door = await DriverDoor.open(way);
    const client = new DaemonClient(() => door.connect());
    try {
      await startContainer(engine, container, plan);
      const { body } = await client.call({ op: "list" });
      const listing = parseBody(client, body, Listing, "entries of an image");
      return new Map(listing.map(([path, kind, mode, uid, gid]) => [path, { kind, mode, uid, gid }]));
    } finally {
      client.lose(lost(nameOf(lease), "it was looked at"));
      door.close();
      await removeContainer(engine, container).finally(() => removeSandboxFolder(folder));
    }
  }

  #plan(folder: SandboxFolder, imageId: string, spec: ContainerPlan["spec"], lease: Lease): ContainerPlan {
    return {
      ...{ name: folder.name, imageId, spec, lease, toolkit: this.#place.toolkit, driver: thisDriver() },
      ...{ folder: folder.path, doorFolder: makeDoorFolder(folder) },
    };
  }

  async #leftContainers(): Promise<z.infer<typeof Containers>> {
    const filters = encodeURIComponent(JSON.stringify({ label: [LABEL.id] }));
    const answer = await this.#place.engine.call("GET", `/containers/json?all=true&filters=${filters}`);
    const listed = Containers.safeParse(answer.value);
    if (listed.success) return listed.data;
    throw new Failure("SandboxUnavailable", "the container engine does not list its containers", {
      retryable: true,
    });
  }

  /** Of drivers that died between container and folder. */
  #removeLeftFolders(now: number): void {
    for (const path of listSandboxFolders(this.#place.folder)) {
      const record = readRecord({ path });
      if (record !== undefined && isLeft(record.driver, record.lease.deadlineMs, now))
        removeSandboxFolder({ path });
    }
  }
}

function thisDriver(): string {
  return formatProcess(currentProcess());
}

/** Its driver is dead, or its time is over. A driver that cannot be seen from here has until the deadline. */
function isLeft(driver: string | undefined, deadlineMs: number, now: number): boolean {
  if (deadlineMs <= now) return true;
  const identity = parseProcess(driver ?? "");
  const state = identity === undefined ? "elsewhere" : processState(identity);
  return state === "dead" || state === "rebooted";
}

/** @throws Failure SandboxUnavailable while another driver has it */
function assertUnowned({ driver, lease }: SandboxRecord): void {
  const identity = parseProcess(driver);
  if (driver === thisDriver() || identity === undefined || processState(identity) !== "alive") return;
  throw new Failure(
    "SandboxUnavailable",
    `${nameOf(lease)} belongs to process ${identity.pid}, which is alive`,
    {
      retryable: true,
    },
  );
}
