// A run on this machine: the stages in order, iteration after iteration, from wherever the run's state stands.
import type { RunConfig } from "../config/run-config.ts";
import { encodeJson } from "../store/json.ts";
import { iterationPrefix, policyPrefix, timingsKey } from "../store/keys.ts";
import { advanceState, readState } from "../store/run-state.ts";
import { minimumEpisodes } from "./close.ts";
import { type CollectServices, collect, type EpisodeText, openText } from "./collect.ts";
import { evaluate } from "./evaluate.ts";
import { evaluationDue } from "./evaluation-due.ts";
import { planIteration } from "./plan.ts";
import { publish } from "./publish.ts";
import type { Timings } from "./records.ts";
import type { Stage } from "./run-events.ts";
import { readRun } from "./run-record.ts";
import type { TrainerThread } from "./trainer-thread.ts";

export interface LoopServices extends CollectServices {
  readonly trainer: TrainerThread;
  /** Called before each stage; throws when this runner must not go on. */
  readonly mayGoOn: () => Promise<void>;
}

export async function runLoop(run: string, services: LoopServices): Promise<void> {
  const { store } = services;
  const { config, pool } = await readRun(store, run);
  let text: EpisodeText | undefined;
  for (;;) {
    const { state } = await readState(store, run);
    const iteration = state.policyPublished;
    const timings: Timings = {};
    const stage = timedStage(iteration, timings, services);
    await evaluateIfDue(run, iteration, config, stage, services);
    if (iteration >= config.training.iterations) return;
    const policy = { version: iteration, prefix: policyPrefix(run, iteration) };
    text ??= await openText(store, policy, config);
    if (state.rolloutsClosed === iteration) {
      const { next } = await stage("plan", () => planIteration({ run, iteration }, { store }));
      await collect(
        {
          phase: iterationPrefix(run, iteration),
          poolFolder: pool.folder,
          config,
          policy,
          text,
          demonstrations: config.kind === "sft",
          ...(config.rollout.stragglers === "cut" && { enough: config.rollout.episodes }),
          minimum: minimumEpisodes(config),
          stage,
        },
        services,
      );
      await advanceState(store, run, await readState(store, run), {
        kind: "close-rollouts",
        iteration,
        pool: next,
      });
    }
    const onStep = (done: number, total: number): void =>
      services.onEvent({ kind: "train-step", done, total });
    await stage("train", () => services.trainer.train({ run, iteration }, onStep));
    await stage("publish", () => publish({ run, version: iteration + 1 }, { store }));
    // A resumed iteration lacks the stages of its first runner; what was written first stays.
    await store.put(timingsKey(iterationPrefix(run, iteration)), encodeJson(timings), { ifNoneMatch: "*" });
    services.onEvent({ kind: "iteration", iteration, iterations: config.training.iterations, timings });
  }
}

/** Of the newest version, before anything else: so it is not left out when a runner died after publishing. */
async function evaluateIfDue(
  run: string,
  version: number,
  config: RunConfig,
  stage: StageRunner,
  services: LoopServices,
): Promise<void> {
  const { evaluation } = config;
  const name = evaluationDue(config, version);
  if (evaluation === undefined || name === undefined) return;
  await stage("evaluate", () =>
    evaluate({ run, name, version, poolFolder: evaluation.pool, repeats: evaluation.episodes }, services),
  );
}

type StageRunner = <T>(name: Stage, work: () => Promise<T>, total?: number) => Promise<T>;

function timedStage(iteration: number, timings: Timings, { mayGoOn, onEvent }: LoopServices): StageRunner {
  return async (name, work, total) => {
    await mayGoOn();
    onEvent({ kind: "stage", iteration, stage: name, total });
    const begun = performance.now();
    const result = await work();
    timings[name] = performance.now() - begun;
    return result;
  };
}
