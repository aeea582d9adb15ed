// Sandboxes on Fargate: a task each, in subnets without a way out. The daemon of its first container does what the agent
// asks; the second one, of the same image, is the clean place in which the agent's files are graded. A driver calls their
// daemons; they know nobody and nothing but their own token.
import type { ECSClient } from "@aws-sdk/client-ecs";
import { z } from "zod";
import { Failure, InputError, InvariantError } from "../../failure/errors.ts";
import { assertSpec } from "../assert-spec.ts";
import type { DaemonClient } from "../daemon/client.ts";
import { DaemonSandbox } from "../daemon/daemon-sandbox.ts";
import { type DialOptions, dialDaemon } from "../daemon/dialer.ts";
import { differenceOf } from "../daemon/difference.ts";
import { LeasedSandbox, lost, nameOf } from "../daemon/leased-sandbox.ts";
import { Changes } from "../daemon/protocol.ts";
import { BASE_ENV, placeSandbox, startImage } from "../daemon/set-up.ts";
import { DockerImageSpec, HostImageSpec, RecordedSpec } from "../recorded-spec.ts";
import type { Lease, Sandbox, SandboxProvider, SandboxSpec } from "../sandbox.ts";
import { TokenBucket } from "../token-bucket.ts";
import { mayPass, refusalOfError } from "./ecs-refusal.ts";
import { EcsTasks } from "./ecs-tasks.ts";
import { DEFAULT_IMAGE, type FargateImage } from "./fargate-image.ts";
import { isOver, Launcher, type StartedTask } from "./launcher.ts";
import { leftSandboxes } from "./left-sandboxes.ts";
import type { Pauses } from "./patience.ts";
import { failureOfStop, type Stopped, wasInterrupted } from "./stop-failure.ts";
import { type ContainerName, PORTS, SUCCESSOR_SLACK_MS, type TaskPlace } from "./task-request.ts";
import { TaskWatch } from "./task-watch.ts";

export interface FargateOptions extends Omit<TaskPlace, "tags" | "driver"> {
  /** Makes one attempt per request. */
  readonly client: ECSClient;
  /** `spot-first`: on demand only where Spot has no room, and for a sandbox that it has interrupted. */
  readonly market: "spot-first" | "on-demand";
  /** @throws InputError for an image that was not prepared */
  readonly findImage: (reference: string) => Promise<FargateImage>;
  /** What is recorded of a task that ECS does not know any more. */
  readonly findStop?: (taskArn: string) => Promise<Stopped | undefined>;
  readonly tags?: Readonly<Record<string, string>>;
  readonly driver?: string;
  readonly timing?: Partial<FargateTiming>;
}

export interface FargateTiming {
  /** Starts of tasks; ECS takes 20 a second with a burst of 100, of all drivers together. */
  readonly creation: { readonly perSecond: number; readonly burst: number };
  /** Until a sandbox runs. */
  readonly patienceMs: number;
  /** Between repeated requests. */
  readonly pauses: Pauses;
  /** Between looks at tasks that are waited for. */
  readonly looks: Pauses;
  /** Until a task that was started counts as lost when ECS does not know it. */
  readonly unknownAfterMs: number;
  readonly connection: Pick<DialOptions, "lostAfterMs" | "probeMs">;
}

const TIMING: FargateTiming = {
  // One driver has a group of episodes, and many drivers start at once.
  creation: { perSecond: 6, burst: 16 },
  patienceMs: 900_000,
  pauses: { firstMs: 1_000, longestMs: 30_000 },
  looks: { firstMs: 1_000, longestMs: 5_000 },
  unknownAfterMs: 60_000,
  connection: {},
};

/** Kept by each daemon for a driver that takes over. */
const Notes = z.strictObject({
  spec: RecordedSpec.extend({ image: z.union([DockerImageSpec, HostImageSpec]) }),
  image: z.strictObject({
    id: z.string(),
    taskDefinition: z.string(),
    env: z.record(z.string(), z.string()),
    workdir: z.string(),
    user: z.string().optional(),
    entrypoint: z.array(z.string()).readonly(),
    health: z
      .strictObject({
        argv: z.array(z.string()).readonly(),
        intervalMs: z.number(),
        timeoutMs: z.number(),
        patienceMs: z.number(),
      })
      .optional(),
  }),
});

/** A task of which sandboxes are made: one for an agent, and one more in its second container. */
interface SharedTask extends StartedTask {
  /** Until when others leave it alone. */
  readonly deadlineMs: number;
  readonly users: Set<ContainerName>;
  isVerifierFree: boolean;
}

export class FargateProvider implements SandboxProvider {
  readonly name = "fargate";
  readonly #options: FargateOptions;
  readonly #timing: FargateTiming;
  readonly #ecs: EcsTasks;
  readonly #watch: TaskWatch;
  readonly #launcher: Launcher;
  readonly #bucket: TokenBucket;
  readonly #sandboxes = new Map<string, Promise<LeasedSandbox>>();
  /** Leases that Spot has interrupted: their next sandbox is on demand. */
  readonly #interrupted = new Set<string>();
  #isDisposed = false;

  constructor(options: FargateOptions) {
    const { client, cluster, subnets, securityGroups, networkedGroup, tags = {}, driver } = options;
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    const { pauses, looks, patienceMs, unknownAfterMs } = this.#timing;
    this.#ecs = new EcsTasks({ client, cluster, pauses });
    this.#watch = new TaskWatch({
      describe: arns => this.#ecs.describe(arns),
      ...{ pauses: looks, unknownAfterMs },
    });
    const place = { cluster, subnets, securityGroups, networkedGroup, tags, driver };
    this.#launcher = new Launcher({ ecs: this.#ecs, watch: this.#watch, place, pauses, patienceMs });
    this.#bucket = new TokenBucket(this.#timing.creation);
  }

  /** The same lease and generation twice is the same sandbox. */
  create(spec: SandboxSpec, lease: Lease): Promise<LeasedSandbox> {
    return this.#once(lease, () => this.#create(spec, lease));
  }

  /** Its address and tokens are ECS's to tell, its spec the daemon's; a grading sandbox ends with its first driver. */
  async adopt(lease: Lease): Promise<Sandbox | undefined> {
    const known = this.#sandboxes.get(keyOf(lease));
    if (known !== undefined) return known;
    const started = await this.#launcher.find(lease);
    if (started === undefined) return undefined;
    const task = sharedTask(started, lease, { isVerifierFree: false });
    const client = this.#dial(task, "agent", lease);
    const { value, body } = await client.call({ op: "recall" });
    if (!value.isNoted) {
      client.lose(lost(nameOf(lease), "it was never set up"));
      return undefined;
    }
    const { spec, image } = Notes.parse(JSON.parse(Buffer.from(body).toString("utf8")));
    const making = { spec, image: { ...image, user: image.user, health: image.health }, lease, client };
    return this.#once(lease, async () => this.#sandbox(task, "agent", making));
  }

  async sweep(): Promise<readonly string[]> {
    const now = new Date();
    const ended: string[] = [];
    const own = await Promise.all([...this.#sandboxes.values()].map(made => made.catch(() => undefined)));
    for (const sandbox of own) {
      if (sandbox === undefined || sandbox.lease.deadlineMs > now.getTime()) continue;
      await sandbox.end("its deadline passed");
      ended.push(sandbox.lease.id);
    }
    for (const { arn, leaseId, why } of leftSandboxes(await this.#ecs.list(), now)) {
      await this.#ecs.stop(arn, why);
      ended.push(leaseId);
    }
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    const ends = await Promise.allSettled(
      [...this.#sandboxes.values()].map(made =>
        made.then(
          sandbox => sandbox[Symbol.asyncDispose](),
          () => undefined,
        ),
      ),
    );
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }

  #once(lease: Lease, make: () => Promise<LeasedSandbox>): Promise<LeasedSandbox> {
    if (this.#isDisposed) throw new InvariantError("the provider is disposed of", { lease: lease.id });
    const key = keyOf(lease);
    const existing = this.#sandboxes.get(key);
    if (existing !== undefined) return existing;
    const made = make();
    this.#sandboxes.set(key, made);
    made.catch(() => this.#sandboxes.delete(key));
    return made;
  }

  async #create(spec: SandboxSpec, lease: Lease): Promise<LeasedSandbox> {
    assertSpec(spec);
    const image = await this.#options.findImage(
      referenceOf(spec, this.#options.networkedGroup !== undefined),
    );
    if (!(lease.deadlineMs > Date.now())) throw lost(nameOf(lease), "its deadline passed before it was made");
    await this.#bucket.take();
    const isSpot = this.#options.market === "spot-first" && !this.#interrupted.has(lease.id);
    const market = isSpot ? "FARGATE_SPOT" : "FARGATE";
    const started = await this.#launcher.start({
      ...{ taskDefinition: image.taskDefinition, spec, lease, market },
    });
    const task = sharedTask(started, lease, { isVerifierFree: true });
    return this.#setUp(task, "agent", { spec, image, lease });
  }

  /** In a container of a task that runs. */
  async #setUp(task: SharedTask, container: ContainerName, making: Making): Promise<LeasedSandbox> {
    const { spec, image, lease } = making;
    task.users.add(container);
    const client = this.#dial(task, container, lease);
    try {
      const sandbox = daemonSandbox(client, making);
      await placeSandbox({ client, sandbox }, { spec, image, lease, fileLimitBytes: spec.diskBytes });
      await client.call({ op: "mark" });
      await startImage(client, { spec, image });
      await client.call({ op: "note" }, encodeNotes(making));
      return this.#sandbox(task, container, { ...making, client });
    } catch (error) {
      client.lose(lost(nameOf(lease), "it was not set up"));
      await this.#release(task, container, "it was not set up").catch(() => undefined); // the sweeper will
      throw error;
    }
  }

  #dial(task: SharedTask, container: ContainerName, lease: Lease): DaemonClient {
    return dialDaemon({
      ...{ host: task.address, port: PORTS[container], token: task.tokens[container] },
      ...this.#timing.connection,
      whyGone: () => this.#whyGone(task, container, lease),
    });
  }

  #sandbox(
    task: SharedTask,
    container: ContainerName,
    making: Making & { readonly client: DaemonClient },
  ): LeasedSandbox {
    const { client, lease } = making;
    task.users.add(container);
    return new LeasedSandbox(making.spec, lease, {
      ...{ client, sandbox: daemonSandbox(client, making) },
      difference: async () => {
        const { body } = await client.call({ op: "changes" });
        return differenceOf(readChanges(body));
      },
      createAnother: (spec, anotherLease) => this.#another(task, { ...making, spec, lease: anotherLease }),
      remove: async () => {
        await this.#release(task, container, "its driver is done with it");
        this.#sandboxes.delete(keyOf(lease));
      },
    });
  }

  /** In the clean container beside it, the first time; in a task of its own after that. */
  async #another(
    task: SharedTask,
    making: Making & { readonly client: DaemonClient },
  ): Promise<LeasedSandbox> {
    const { spec, lease, client } = making;
    if (!task.isVerifierFree || lease.deadlineMs > task.deadlineMs) return this.create(spec, lease);
    task.isVerifierFree = false;
    // The first container may outlive its own lease by then: its end would end the task.
    await client.call({ op: "open", deadlineMs: task.deadlineMs, made: [] });
    try {
      return await this.#once(lease, () => this.#setUp(task, "verifier", making));
    } catch (error) {
      // What was beside the agent is not to be had; what the spec lacks will be missing elsewhere too.
      if (error instanceof Failure) return this.create(spec, lease);
      throw error;
    }
  }

  /** The last one turns off the light. */
  async #release(task: SharedTask, container: ContainerName, reason: string): Promise<void> {
    const others = [...task.users].filter(user => user !== container);
    if (others.length > 0) {
      task.users.delete(container);
      return;
    }
    try {
      await this.#ecs.stop(task.arn, reason);
    } catch (error) {
      // Its first daemon can end the task too, by its own end.
      if (!(await this.#shutDown(task))) throw error;
    }
    task.users.delete(container);
  }

  async #shutDown({ address: host, tokens }: SharedTask): Promise<boolean> {
    const gone = new Failure("SandboxLost", "nobody answers", { retryable: true });
    const client = dialDaemon({ host, port: PORTS.agent, token: tokens.agent, whyGone: async () => gone });
    try {
      await client.call({ op: "shutdown" });
      return true;
    } catch {
      return false;
    } finally {
      client.lose(gone);
    }
  }

  async #whyGone(task: SharedTask, container: ContainerName, lease: Lease): Promise<Failure | undefined> {
    const what = nameOf(lease);
    const untilMs = Date.now() + this.#timing.looks.longestMs;
    const seen = await this.#watch
      .until(task.arn, () => true, { untilMs, isKnown: true })
      .catch(error => {
        const refusal = refusalOfError(error);
        if (mayPass(refusal)) return "late" as const;
        return lost(what, `and why is not to be found out: ${refusal.message}`);
      });
    if (seen === "late" || seen instanceof Failure) return seen === "late" ? undefined : seen;
    const stopped = seen === "unknown" ? await this.#options.findStop?.(task.arn) : (seen as Stopped);
    if (stopped === undefined) return lost(what, "ECS does not know its task any more");
    if (seen === "unknown" || isOver(seen)) {
      if (wasInterrupted(stopped)) this.#interrupted.add(lease.id);
      return failureOfStop(what, stopped);
    }
    const own = seen.containers?.find(({ name }) => name === container);
    if (own?.lastStatus !== "STOPPED") return undefined;
    const { startedAt } = stopped;
    return failureOfStop(what, { containers: [own], ...(startedAt && { startedAt }) });
  }
}

interface Making {
  readonly spec: SandboxSpec;
  readonly image: FargateImage;
  readonly lease: Lease;
}

function encodeNotes({ spec, image }: Making): Uint8Array {
  return Buffer.from(JSON.stringify({ spec, image }));
}

function daemonSandbox(client: DaemonClient, { spec, image, lease }: Making): DaemonSandbox {
  const env = { ...BASE_ENV, ...image.env, ...spec.env };
  return new DaemonSandbox(lease, client, { workdir: spec.workdir, env, user: spec.user ?? image.user });
}

function sharedTask(
  started: StartedTask,
  { deadlineMs }: Lease,
  { isVerifierFree }: { readonly isVerifierFree: boolean },
): SharedTask {
  return { ...started, deadlineMs: deadlineMs + SUCCESSOR_SLACK_MS, users: new Set(), isVerifierFree };
}

/** @throws Failure SandboxBroken for what no daemon of ours would list */
function readChanges(body: Uint8Array): Changes {
  const changes = Changes.safeParse(JSON.parse(Buffer.from(body).toString("utf8")));
  if (changes.success) return changes.data;
  throw new Failure("SandboxBroken", `its daemon lists no changes: ${changes.error.message}`, {
    retryable: false,
  });
}

function referenceOf({ image, network }: SandboxSpec, hasProxy: boolean): string {
  if (network !== "none" && !(network === "public" && hasProxy)) {
    throw new InputError({
      what: `a sandbox on Fargate has no network ${JSON.stringify(network)}`,
      where: "specification of a sandbox",
      expected: `network none${hasProxy ? " or public" : ": its subnets have no way out"}`,
      fix: "bake what the task downloads into its image, leave it out of the pool, or deploy with network.egress",
    });
  }
  switch (image.kind) {
    case "docker":
      return image.reference;
    case "host":
      return DEFAULT_IMAGE;
    case "root":
      throw new InputError({
        what: "Fargate cannot make a sandbox of a folder of this machine",
        where: image.folder,
        expected: "an image that the prepare stage has built",
        fix: "use the bubblewrap provider",
      });
    default:
      return image satisfies never;
  }
}

function keyOf({ id, generation }: Lease): string {
  return JSON.stringify([id, generation]);
}
