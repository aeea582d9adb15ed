// Sandboxes in containers of docker or podman on this machine: real images, limits of memory and processors, a network
// where a task is allowed one. The engine is asked to make and remove them; commands go to their daemon directly.
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import { makeFolders } from "../../files/make-folders.ts";
import { DaemonClient } from "../../sandboxd/client.ts";
import { DaemonSandbox } from "../../sandboxd/daemon-sandbox.ts";
import { DriverListener } from "../../sandboxd/driver-listener.ts";
import { makeToken } from "../../sandboxd/handshake.ts";
import { LeasedSandbox, lost, nameOf } from "../../sandboxd/leased-sandbox.ts";
import { BASE_ENV, placeSandbox, startImage } from "../../sandboxd/set-up.ts";
import { openToolkit } from "../../sandboxd/toolkit.ts";
import { assertSpec } from "../assert-spec.ts";
import type { ContainerImage } from "../container-image.ts";
import { memoryKills } from "../memory-kills.ts";
import { openRunFolder } from "../run-folder.ts";
import type { Lease, Sandbox, SandboxProvider, SandboxSpec } from "../sandbox.ts";
import { SandboxRegistry } from "../sandbox-registry.ts";
import { TokenBucket } from "../token-bucket.ts";
import {
  type ContainerPlan,
  createContainer,
  type JoinedNetwork,
  LABEL,
  removeContainer,
  startContainer,
} from "./container.ts";
import { lifeOf, whyEnded } from "./container-end.ts";
import { Engine } from "./engine.ts";
import { inspectImage } from "./image.ts";
import { ImageListings } from "./image-listings.ts";
import { assertUnowned, isLeft, ownerOf, thisDriver } from "./ownership.ts";
import { type ContainerLocation, planContainer } from "./plan-container.ts";
import {
  listSandboxFolders,
  makeListenerFolder,
  readOwner,
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
  makeFolders(folder, { mode: 0o755 });
  const toolkit = openToolkit(join(runFolder, "toolkits"));
  return new DockerProvider({ engine, folder, toolkit, creation: options.creation ?? CREATION });
}

const Listed = z.object({
  Id: z.string(),
  /** Unix time in s. */
  Created: z.number(),
  Labels: z.record(z.string(), z.string()).nullish(),
});
type Listed = z.infer<typeof Listed>;

export class DockerProvider implements SandboxProvider {
  readonly name = "docker";
  readonly #location: ContainerLocation;
  readonly #bucket: TokenBucket;
  readonly #sandboxes = new SandboxRegistry<LeasedSandbox>();
  readonly #listings = new ImageListings();

  constructor(location: ContainerLocation) {
    this.#location = location;
    this.#bucket = new TokenBucket(location.creation);
  }

  /** The same lease and generation twice is the same sandbox. */
  async create(spec: SandboxSpec, lease: Lease): Promise<LeasedSandbox> {
    return this.#sandboxes.once(lease, () => this.#create(spec, lease, undefined));
  }

  async adopt(lease: Lease): Promise<Sandbox | undefined> {
    const known = this.#sandboxes.get(lease);
    if (known !== undefined) return known;
    const folder = sandboxFolder(this.#location.folder, lease);
    const record = readRecord(folder);
    if (record === undefined) return undefined;
    assertUnowned(record);
    if (!record.isReady) return undefined;
    if ((await whyEnded(this.#location.engine, record.container, lifeOf(record))) !== undefined)
      return undefined;
    return this.#sandboxes.once(lease, () => this.#takeOver(folder, record));
  }

  /** What an image gives to its sandboxes where a task says nothing. @throws InputError when the engine has no such image */
  describeImage(reference: string): Promise<ContainerImage> {
    return inspectImage(this.#location.engine, reference);
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
      await removeContainer(this.#location.engine, Id);
      if (labels[SERVICE_LABEL] !== undefined) continue; // gone with its sandbox
      if (path.startsWith(`${this.#location.folder}/`)) removeSandboxFolder({ path });
      ended.push(id);
    }
    this.#removeLeftFolders(now);
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.#sandboxes.endAll();
    } finally {
      this.#location.engine.close();
    }
  }

  async #create(spec: SandboxSpec, lease: Lease, joined: JoinedNetwork | undefined): Promise<LeasedSandbox> {
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
    const { engine } = this.#location;
    const image = await inspectImage(engine, wanted.reference);
    const folder = sandboxFolder(this.#location.folder, lease);
    const plan = { ...planContainer(this.#location, folder, { imageId: image.id, spec, lease }), joined };
    const container = (await createContainer(engine, plan)) ?? (await this.#replace(folder, plan));
    if (typeof container !== "string") return container;
    const token = makeToken();
    const record: SandboxRecord = {
      ...{ lease, container, listener: plan.listenerFolder, token, driver: thisDriver() },
      spec: { ...spec, network, image: wanted, env: { ...spec.env } },
      imageEnv: { ...image.env },
      ...(image.user === undefined ? {} : { imageUser: image.user }),
      isReady: false,
      killsBefore: memoryKills(),
    };
    let listener: DriverListener | undefined;
    try {
      listener = await this.#openListener(record, { isGrant: true });
      writeRecord(folder, record);
      await startContainer(engine, container, plan);
      if (spec.services !== undefined) await startServices(engine, container, plan, spec.services);
      const connected = this.#connect(listener, record);
      const { client } = connected;
      const listing = await this.#listings.findOrRead(image, client);
      await placeSandbox(connected, { spec, image, lease, listing });
      await startImage(client, { spec, image });
      writeRecord(folder, { ...record, isReady: true });
      return this.#sandbox(folder, record, { listener, ...connected });
    } catch (error) {
      listener?.close();
      if (spec.services !== undefined) await removeServices(engine, plan.name).catch(() => undefined); // as swept
      await removeContainer(engine, container).finally(() => removeSandboxFolder(folder));
      throw error;
    }
  }

  /** A container of this lease is there: its driver died, or died while making it. */
  async #replace(folder: SandboxFolder, plan: ContainerPlan): Promise<LeasedSandbox | string> {
    const { engine } = this.#location;
    const record = readRecord(folder);
    if (record !== undefined) {
      assertUnowned(record);
      if (record.isReady && (await whyEnded(engine, record.container, lifeOf(record))) === undefined)
        return this.#takeOver(folder, record);
    }
    await removeServices(engine, folder.name);
    await removeContainer(engine, folder.name);
    removeSandboxFolder(folder);
    makeListenerFolder(folder, ownerOf(plan.lease), plan.listenerFolder);
    const container = await createContainer(engine, plan);
    if (container !== undefined) return container;
    throw new Failure("SandboxUnavailable", `container ${folder.name} cannot be replaced`, {
      retryable: true,
    });
  }

  async #takeOver(folder: SandboxFolder, old: SandboxRecord): Promise<LeasedSandbox> {
    const record = { ...old, driver: thisDriver() };
    const listener = await this.#openListener(record, { isGrant: false });
    try {
      writeRecord(folder, record);
      const connected = this.#connect(listener, record);
      await connected.client.call({ op: "status" });
      return this.#sandbox(folder, record, { listener, ...connected });
    } catch (error) {
      listener.close();
      throw error;
    }
  }

  #openListener(record: SandboxRecord, { isGrant }: { readonly isGrant: boolean }): Promise<DriverListener> {
    const { listener, token, container } = record;
    const whyGone = () => whyEnded(this.#location.engine, container, lifeOf(record)).catch(() => undefined); // the engine is away: we wait
    return DriverListener.open({ folder: listener, token, isGrant, whyGone });
  }

  #connect(
    listener: DriverListener,
    { lease, spec, imageEnv, imageUser }: SandboxRecord,
  ): { readonly client: DaemonClient; readonly sandbox: DaemonSandbox } {
    const client = new DaemonClient(() => listener.connect());
    const user = spec.user ?? imageUser;
    const env = { ...BASE_ENV, ...imageEnv, ...spec.env };
    return { client, sandbox: new DaemonSandbox(lease, client, { workdir: spec.workdir, env, user }) };
  }

  #sandbox(
    folder: SandboxFolder,
    { spec, lease, container }: SandboxRecord,
    connected: {
      readonly listener: DriverListener;
      readonly client: DaemonClient;
      readonly sandbox: DaemonSandbox;
    },
  ): LeasedSandbox {
    const { client, sandbox, listener } = connected;
    return new LeasedSandbox(spec, lease, {
      ...{ client, sandbox },
      // Services and what they hold stay: the next one comes onto their network.
      createAnother: ({ services, ...another }, anotherLease) =>
        services === undefined
          ? this.create(another, anotherLease)
          : this.#sandboxes.once(anotherLease, () =>
              this.#create({ ...another, network: spec.network }, anotherLease, {
                container,
                names: services.map(({ name }) => name),
              }),
            ),
      remove: async () => {
        listener.close();
        if (spec.services !== undefined) await removeServices(this.#location.engine, folder.name);
        await removeContainer(this.#location.engine, container);
        removeSandboxFolder(folder);
        this.#sandboxes.forget(lease);
      },
    });
  }

  async #leftContainers(): Promise<readonly Listed[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [LABEL.id] }));
    const answer = await this.#location.engine.call("GET", `/containers/json?all=true&filters=${filters}`);
    const listed = z.array(Listed).safeParse(answer.value);
    // Those on another's network come after it, and podman wants them to go before it.
    const isService = ({ Labels }: Listed) => Labels?.[SERVICE_LABEL] !== undefined;
    if (listed.success)
      return listed.data.sort((a, b) => b.Created - a.Created || Number(isService(b)) - Number(isService(a)));
    throw new Failure("SandboxUnavailable", "the container engine does not list its containers", {
      retryable: true,
    });
  }

  /** Of drivers that died between folder and container. */
  #removeLeftFolders(now: number): void {
    for (const path of listSandboxFolders(this.#location.folder)) {
      const owner = readOwner({ path });
      if (owner !== undefined && isLeft(owner.driver, owner.deadlineMs, now)) removeSandboxFolder({ path });
    }
  }
}
