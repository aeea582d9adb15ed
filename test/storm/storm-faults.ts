// Faults of a storm depend on the number of the shard, so they are the same however often the storm kills the runner.
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Program,
  type ProgramEnd,
  type ProgramRun,
  runProgram,
} from "../../src/asl/executors/program.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import type { FaultPlan } from "../asl/fault-plan.ts";
import { listProcesses, SPAWNER } from "../sandbox/processes.ts";
import type { StormLog } from "./storm-log.ts";
import type { StormyStore } from "./stormy-store.ts";

/** Faults of requests to services: throttles, no capacity, functions that end without an answer. */
export const SERVICE_FAULTS: FaultPlan = [
  {
    ...{ kind: "throttle", resource: "ecs:runTask", burst: 3, perSecond: 0.2 },
    ...{ error: "ECS.AmazonECSException", cause: "Rate exceeded" },
  },
  {
    ...{ kind: "error", state: "PlayOnSpot", attempts: [1, 2] },
    items: Array.from({ length: 100 }, (_, index) => 4 + 11 * index),
    ...{ error: "ECS.AmazonECSException", cause: "Capacity is unavailable at this time." },
  },
  {
    ...{ kind: "error", state: "PlayOnDemand", attempts: [1] },
    items: Array.from({ length: 100 }, (_, index) => 1 + 10 * index),
    ...{ error: "ECS.InvalidParameterException", cause: "Error retrieving subnets: Rate exceeded" },
  },
  { kind: "error", state: "Plan", attempts: [1], error: "Lambda.TooManyRequestsException" },
  { kind: "error", state: "Prepare", attempts: [1], error: "Lambda.SdkClientException" },
  { kind: "error", state: "Score", attempts: [1, 2], error: "Sandbox.Timedout" },
  { kind: "error", state: "Close", attempts: [1], error: "Lambda.Unknown" },
  { kind: "error", state: "TrainOnSpot", attempts: [1, 2], error: "Batch.AWSBatchException" },
  { kind: "error", state: "Publish", attempts: [1], error: "Sandbox.Timedout" },
];

type DriverFault = "spot" | "lost" | "never-started" | undefined;

/** @param shard from 0 @param start of the shard in this market, from 1 */
function driverFault(shard: number, market: string, start: number): DriverFault {
  // In both markets and every time, before an episode is finished: one shard in 25, of which one in ten may fail.
  if (shard % 25 === 7) return "lost";
  if (start > 1) return undefined;
  if (market !== "FARGATE_SPOT") return undefined;
  if (shard % 5 === 1) return "spot";
  if (shard % 10 === 3) return "lost";
  return shard % 10 === 5 ? "never-started" : undefined;
}

/**
 * @param open a driver with a store of its own
 * @param shardSize of episodes, by which a shard is numbered
 */
export function stormyDriver(
  open: (market: string) => { readonly program: Program; readonly store: StormyStore },
  { shardSize, log }: { readonly shardSize: number; readonly log: StormLog },
): Program {
  const run = async (given: ProgramRun): Promise<ProgramEnd> => {
    const { T1_EPISODES = "", T1_MARKET = "" } = given.environment;
    const shard = Math.floor(Number.parseInt(T1_EPISODES, 10) / shardSize);
    const started = `start of shard ${shard} on ${T1_MARKET}`;
    log.note(started);
    const fault = driverFault(shard, T1_MARKET, log.count(started));
    const random = new RandomStream(deriveSeed("storm", shard, T1_MARKET));
    if (fault === "never-started") {
      log.note("fault: task that never starts");
      return { stopCode: "TaskFailedToStart", reason: "Capacity is unavailable at this time." };
    }
    const { program, store } = open(T1_MARKET);
    if (fault === undefined) {
      const end = await runProgram(program, given);
      if (end.exitCode !== 0) log.note(`driver of shard ${shard} ended with ${end.exitCode}: ${end.error}`);
      return end;
    }
    const stop = new AbortController();
    const end = runProgram(program, { ...given, signal: AbortSignal.any([given.signal, stop.signal]) });
    if (shard % 25 !== 7) await Promise.race([end, sleep(100 + 900 * random.uniform())]);
    if (fault === "spot") {
      log.note("fault: Spot interruption");
      stop.abort();
      await end;
      return {
        exitCode: 75,
        stopCode: "SpotInterruption",
        reason: "Your Spot Task was interrupted.",
      };
    }
    log.note("fault: lost task");
    store.sever();
    // The service reports nothing about the container, and does not wait for it.
    end.catch(() => {});
    return { stopCode: "", reason: "Host EC2 (instance) terminated." };
  };
  return { kind: "function", run };
}

/** Kills the first training job when it has worked for a while. */
export function stormyTrainer(trainer: Program, log: StormLog): Program {
  const run = async (given: ProgramRun): Promise<ProgramEnd> => {
    log.note("start of training");
    if (log.count("fault: killed trainer") > 0) return runProgram(trainer, given);
    const end = runProgram(trainer, given);
    const isOver = end.then(() => true);
    // Its process may take a while to be there, and a small training is soon over.
    for (let pid: number | undefined; ; pid = trainerProcess()) {
      if (pid === undefined && !(await Promise.race([isOver, sleep(20, false)]))) continue;
      await sleep(100);
      if (pid !== undefined)
        try {
          process.kill(pid, "SIGKILL");
          log.note("fault: killed trainer");
        } catch {} // it has ended
      return end;
    }
  };
  return { kind: "function", run };
}

function trainerProcess(): number | undefined {
  return listProcesses().find(
    ({ parent, words }) =>
      parent === process.pid && words.some(word => word.endsWith("/containers/trainer/main.ts")),
  )?.pid;
}

/** Kills one sandbox after another, and once the process that starts all of them. @returns ends it */
export function killSandboxes(everyMs: number, log: StormLog): () => void {
  const random = new RandomStream(deriveSeed("storm", "sandboxes", log.count("life")));
  let count = 0;
  const timer = setInterval(() => {
    const { spawner, sandboxes } = sandboxProcesses();
    count += 1;
    const isSpawner = count % 20 === 10;
    const pid = isSpawner ? spawner : sandboxes[random.integer(Math.max(1, sandboxes.length))];
    if (pid === undefined) return;
    try {
      process.kill(pid, "SIGKILL");
      log.note(isSpawner ? "fault: killed spawner of sandboxes" : "fault: killed sandbox");
    } catch {} // it has ended
  }, everyMs);
  return () => clearInterval(timer);
}

/** The spawner is a child of this process, and the entry processes of sandboxes are its children. */
function sandboxProcesses(): { readonly spawner: number | undefined; readonly sandboxes: readonly number[] } {
  const all = listProcesses();
  const spawner = all.find(({ parent, words }) => parent === process.pid && words[0] === SPAWNER)?.pid;
  return { spawner, sandboxes: all.filter(({ parent }) => parent === spawner).map(({ pid }) => pid) };
}
