// Containers beside a sandbox, as docker-compose.yaml has them. They share the sandbox's network, where each finds the
// others by name on the one loopback: an engine without bridges can do that too, and nobody else gets in.
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import type { SandboxService, ServiceCondition } from "../sandbox.ts";
import {
  type ContainerPlan,
  confinement,
  createNamed,
  type JoinedNetwork,
  joinNetwork,
  labelsOf,
  removeContainer,
} from "./container.ts";
import { complaintOf, type Engine } from "./engine.ts";

/** The name of the container that it stands beside. */
export const SERVICE_LABEL = "t1.service.of";
/** From one look at a service to the next, and until it has to be what is waited for. */
const LOOK_MS = 300;
const WAIT_MS = 300_000;
const LOG_LINES = 20;

const State = z.object({
  State: z.object({
    Running: z.boolean(),
    ExitCode: z.number(),
    /** Of one that has a health check: others are "none", or for podman have no word at all. */
    Health: z
      .object({ Status: z.string() })
      .nullish()
      .transform(health => (["", "none"].includes(health?.Status ?? "") ? undefined : health)),
  }),
});
type ServiceState = z.infer<typeof State>["State"];

/**
 * Starts them in their order, and waits until each is healthy, or runs where it has no health check, or has done its work.
 *
 * @param container the sandbox's, which runs
 * @throws InputError with the last words of one that does not come to it
 */
export async function startServices(
  engine: Engine,
  container: string,
  plan: ContainerPlan,
  services: readonly SandboxService[],
): Promise<void> {
  const joined = { container, names: services.map(({ name }) => name) };
  const started = new Map<string, string>();
  const awaitOne = async ({ service, condition }: ServiceCondition): Promise<void> => {
    const id = started.get(service);
    if (id !== undefined) await awaitService(engine, id, service, condition);
  };
  for (const service of services) {
    for (const condition of service.after) await awaitOne(condition);
    const name = `${plan.name}-${service.name}`;
    const options = serviceOptions(engine, service, joined, plan);
    const id = await createNamed(engine, name, options);
    if (id === undefined)
      throw new Failure("SandboxUnavailable", `there is a container ${name} already`, { retryable: true });
    const complaint = await startService(engine, id);
    if (complaint !== undefined) throw notStarted(service.name, complaint, service.reference);
    started.set(service.name, id);
  }
  for (const { name } of services) await awaitOne({ service: name, condition: "ready" });
}

/** @returns what is wrong with it */
async function startService(engine: Engine, id: string): Promise<string | undefined> {
  try {
    const answer = await engine.call("POST", `/containers/${id}/start`);
    return answer.status >= 300 && answer.status !== 304 ? complaintOf(answer) : undefined;
  } catch (error) {
    // For podman also a program that the image does not have is an error of its own.
    if (error instanceof Failure && /\bexec: /.test(error.message)) return error.message;
    throw error;
  }
}

/** Those that any driver has left beside a container. */
export async function removeServices(engine: Engine, name: string): Promise<void> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`${SERVICE_LABEL}=${name}`] }));
  const answer = await engine.call("GET", `/containers/json?all=true&filters=${filters}`);
  const listed = z.array(z.object({ Id: z.string() })).safeParse(answer.value).data ?? [];
  await Promise.all(listed.map(({ Id }) => removeContainer(engine, Id)));
}

function serviceOptions(engine: Engine, service: SandboxService, joined: JoinedNetwork, plan: ContainerPlan) {
  const { reference, entrypoint, command, env, workdir, user, healthcheck, memoryBytes, cpus } = service;
  const nanoseconds = (ms: number | undefined): number => Math.round((ms ?? 0) * 1e6); // 0 is Docker's default
  return {
    Image: reference,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    Labels: { ...labelsOf(plan), [SERVICE_LABEL]: plan.name },
    ...(entrypoint !== undefined && { Entrypoint: entrypoint }),
    ...(command !== undefined && { Cmd: command }),
    ...(workdir !== undefined && { WorkingDir: workdir }),
    ...(user !== undefined && { User: user }),
    ...(healthcheck !== undefined && {
      Healthcheck: {
        Test: healthcheck.test,
        Interval: nanoseconds(healthcheck.intervalMs),
        Timeout: nanoseconds(healthcheck.timeoutMs),
        StartPeriod: nanoseconds(healthcheck.startPeriodMs),
        Retries: healthcheck.retries ?? 0,
      },
    }),
    HostConfig: {
      ...confinement({ diskBytes: plan.spec.diskBytes, memoryBytes, cpus }),
      ...joinNetwork(engine, joined, plan.folder),
    },
  };
}

async function awaitService(
  engine: Engine,
  id: string,
  name: string,
  condition: ServiceCondition["condition"],
): Promise<void> {
  let hasLooked = false;
  for (const until = performance.now() + WAIT_MS; ; await sleep(LOOK_MS)) {
    const answer = await engine.call("GET", `/containers/${id}/json`);
    const state = State.safeParse(answer.value).data?.State;
    if (state === undefined)
      throw new Failure("SandboxUnavailable", `the service ${name} is gone`, { retryable: true });
    if (holds(state, condition)) {
      if (condition !== "ready" || state.Health || hasLooked) return;
      hasLooked = true; // one that ends at once was seen running
      continue;
    }
    const problem = whyNever(state, condition) ?? (performance.now() > until ? whyLate(state) : undefined);
    if (problem !== undefined) throw notStarted(name, problem, await lastWords(engine, id));
  }
}

function holds(
  { Running, ExitCode, Health }: ServiceState,
  condition: ServiceCondition["condition"],
): boolean {
  const hasEnded = !Running && ExitCode === 0;
  switch (condition) {
    case "started":
      return Running || hasEnded;
    case "completed":
      return hasEnded;
    case "healthy":
      return Running && Health?.Status === "healthy";
    case "ready":
      return hasEnded || (Running && (!Health || Health.Status === "healthy"));
    default:
      return condition satisfies never;
  }
}

function whyNever({ Running, ExitCode, Health }: ServiceState, condition: ServiceCondition["condition"]) {
  if (!Running && ExitCode !== 0) return `it ended with exit code ${ExitCode}`;
  if (Running && Health?.Status === "unhealthy") return "its health check does not pass";
  if (condition !== "healthy") return undefined;
  return Running && Health ? undefined : "it has no health check, or has ended";
}

function whyLate({ Health }: ServiceState): string {
  if (Health?.Status !== "starting") return "it takes too long";
  return "its health check has neither passed nor failed for good (podman runs none where there is no systemd)";
}

function notStarted(name: string, why: string, said: string): InputError {
  return new InputError({
    what: `the service ${name} does not come up: ${why}`,
    where: "docker-compose.yaml",
    expected: `a service that runs; its last words were\n${said}`,
    fix: "see what it says",
  });
}

async function lastWords(engine: Engine, id: string): Promise<string> {
  const { value } = await engine.call(
    "GET",
    `/containers/${id}/logs?stdout=true&stderr=true&tail=${LOG_LINES}`,
  );
  // Each piece begins with eight bytes: stream, three zeros, length.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the frames of the engine
  return `${value}`.replace(/[\x00-\x02]\0{3}.{4}/gs, "").trim();
}
