// Sandboxes on Fargate: a task each, in subnets without a way out. The daemon of its first container does what the agent
// asks; the second one, of the same image, is the clean place in which the agent's files are graded. A driver calls their
// daemons; they know nobody and nothing but their own token.
import type { ECSClient } from "@aws-sdk/client-ecs";
import { Failure } from "../../failure/errors.ts";
import type { DaemonClient } from "../../sandboxd/client.ts";
import { DaemonSandbox } from "../../sandboxd/daemon-sandbox.ts";
import { type DialOptions, dialDaemon } from "../../sandboxd/dialer.ts";
import { LeasedSandbox, lost, nameOf } from "../../sandboxd/leased-sandbox.ts";
import { BASE_ENV, placeSandbox, startImage } from "../../sandboxd/set-up.ts";
import { assertSpec } from "../assert-spec.ts";
import type { Lease, Sandbox, SandboxProvider, SandboxSpec } from "../sandbox.ts";
import { SandboxRegistry } from "../sandbox-registry.ts";
import { TokenBucket } from "../token-bucket.ts";
import { assertNetwork, referenceOf } from "./accepted-spec.ts";
import { mayPass, refusalOfError } from "./ecs-refusal.ts";
import { EcsTasks } from "./ecs-tasks.ts";
import type { FargateImage } from "./fargate-image.ts";
import { isOver, Launcher, type StartedTask } from "./launcher.ts";
import { decodeMetadata, encodeMetadata } from "./metadata.ts";
import { orphanedSandboxes } from "./orphaned-sandboxes.ts";
import type { Pauses } from "./retry-aws.ts";
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
  readonly retryForMs: number;
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
  retryForMs: 900_000,
  pauses: { firstMs: 1_000, longestMs: 30_000 },
  looks: { firstMs: 1_000, longestMs: 5_000 },
  unknownAfterMs: 60_000,
  connection: {},
};

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
  readonly #sandboxes = new SandboxRegistry<LeasedSandbox>();
  /** Leases that Spot has interrupted: their next sandbox is on demand. */
  readonly #interrupted = new Set<string>();
  readonly #disposal = new AbortController();

  constructor(options: FargateOptions) {
    const { client, cluster, subnets, securityGroups, networkedGroups = [], tags = {}, driver } = options;
    this.#options = options;
    this.#timing = { ...TIMING, ...options.timing };
    const { pauses, looks, retryForMs, unknownAfterMs } = this.#timing;
    this.#ecs = new EcsTasks({ client, cluster, pauses });
    this.#watch = new TaskWatch({
      describe: arns => this.#ecs.describe(arns),
      ...{ pauses: looks, unknownAfterMs },
    });
    const place = { cluster, subnets, securityGroups, networkedGroups, tags, driver };
    const { signal } = this.#disposal;
    this.#launcher = new Launcher({ ecs: this.#ecs, watch: this.#watch, place, pauses, retryForMs, signal });
    this.#bucket = new TokenBucket(this.#timing.creation);
  }

  /** The same lease and generation twice is the same sandbox. */
  create(spec: SandboxSpec, lease: Lease): Promise<LeasedSandbox> {
    return this.#sandboxes.once(lease, () => this.#create(spec, lease));
  }

  /** Its address and tokens are ECS's to tell, its spec the daemon's; a grading sandbox ends with its first driver. */
  async adopt(lease: Lease): Promise<Sandbox | undefined> {
    const known = this.#sandboxes.get(lease);
    if (known !== undefined) return known;
    const started = await this.#launcher.find(lease);
    if (started === undefined) return undefined;
    const task = sharedTask(started, lease, { isVerifierFree: false });
    const client = this.#dial(task, "agent", lease);
    const { value, body } = await client.call({ op: "get-metadata" });
    if (!value.isSet) {
      client.lose(lost(nameOf(lease), "it was never set up"));
      return undefined;
    }
    const making = { ...decodeMetadata(client, body), lease, client };
    return this.#sandboxes.once(lease, async () => this.#sandbox(task, "agent", making));
  }

  async sweep(): Promise<readonly string[]> {
    const now = new Date();
    const ended = await this.#sandboxes.endLate(now.getTime());
    for (const { arn, leaseId, why } of orphanedSandboxes(await this.#ecs.list(), now)) {
      await this.#ecs.stop(arn, why);
      ended.push(leaseId);
    }
    return ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Spot leaves a driver two minutes: who still waits for a task gets none.
    this.#disposal.abort(lost("a sandbox that had not started", "its driver ends"));
    await this.#sandboxes.endAll();
  }

  async #create(spec: SandboxSpec, lease: Lease): Promise<LeasedSandbox> {
    assertSpec(spec);
    assertNetwork(spec, this.#options.networkedGroups ?? []);
    const image = await this.#options.findImage(referenceOf(spec));
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
      await startImage(client, { spec, image });
      await client.call({ op: "put-metadata" }, encodeMetadata(making));
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
      createAnother: (spec, anotherLease) => this.#another(task, { ...making, spec, lease: anotherLease }),
      remove: async () => {
        await this.#release(task, container, "its driver is done with it");
        this.#sandboxes.forget(lease);
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
      return await this.#sandboxes.once(lease, () => this.#setUp(task, "verifier", making));
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
    const own = seen === "unknown" ? undefined : seen.containers?.find(({ name }) => name === container);
    const isOnly = seen !== "unknown" && !isOver(seen); // its task may be on its way out, by a request
    if (isOnly && own?.lastStatus !== "STOPPED") return undefined;
    if (wasInterrupted(stopped)) this.#interrupted.add(lease.id);
    return failureOfStop(what, isOnly && own !== undefined ? { ...stopped, containers: [own] } : stopped);
  }
}

interface Making {
  readonly spec: SandboxSpec;
  readonly image: FargateImage;
  readonly lease: Lease;
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
