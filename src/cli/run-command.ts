// `t1 run`: start, resume, watch, stop and list runs.
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import * as ort from "onnxruntime-node";
import { parseRunConfig } from "../config/parse-config.ts";
import { readMetrics } from "../pipeline/metrics.ts";
import { runLoop } from "../pipeline/run-loop.ts";
import { describeSoftware, readRun } from "../pipeline/run-record.ts";
import { startRun } from "../pipeline/start-run.ts";
import { iterationPrefix, metricsKey, policyPrefix, runKey } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import { advanceState, readState } from "../store/run-state.ts";
import { imagesOption } from "./image-options.ts";
import { withLocalRunner } from "./local-runner.ts";
import { DEFAULT_STORE, print } from "./output.ts";
import { Progress } from "./progress.ts";
import { readConfig } from "./read-config.ts";
import { listRuns } from "./run-list.ts";
import { formatIteration, showRun } from "./run-progress.ts";
import { budgetOption, isOnStack, overlapOption, seconds, stackOption } from "./stack-option.ts";
import { formatTable } from "./table.ts";

interface RunOptions {
  readonly local: string;
  readonly stack?: string;
  readonly images?: string;
  readonly json?: boolean;
}

export function addRunCommand(program: Command): void {
  const command = program.command("run").description("start, resume, watch, stop and list runs");
  const store = (sub: Command): Command =>
    sub
      .option("--local <dir>", "folder that holds the store", DEFAULT_STORE)
      .addOption(stackOption())
      .option("--json", "print the result as JSON on stdout");

  store(
    command
      .command("start <config>")
      .description("start a run from a YAML config and work on it until it is done"),
  )
    .requiredOption("--name <run>", "name of the run")
    .addOption(imagesOption())
    .option(
      "--set <key=value>",
      "a setting that wins over the config's; may be given again, e.g. --set seed=1 --set reward.kind=binary",
      (value: string, before: string[]) => [...before, value],
      [],
    )
    .option("--continue", "go on with the run when it is there already")
    .addOption(overlapOption())
    .addOption(budgetOption())
    .action(
      async (
        configFile: string,
        options: RunOptions & { name: string; set: string[]; continue?: boolean },
      ) => {
        if (isOnStack(options)) return (await onStack()).startOnStack(configFile, options);
        const opened = await openStore(options.local);
        const config = parseRunConfig(await readConfig(configFile), configFile, options.set);
        const progress = new Progress({ stream: process.stderr });
        const { threads } = config;
        await withLocalRunner(
          opened,
          options.name,
          { threads, imagesFile: options.images, onEvent: showRun(options.name, opened, progress) },
          async runner => {
            if (options.continue && (await exists(opened, options.name)))
              await clearStop(opened, options.name);
            else {
              progress.begin("reading pool and model");
              const software = describeSoftware(ort.env.versions.common);
              await startRun(
                { run: options.name, config, configFile, software, createdAt: new Date() },
                { store: opened },
              );
            }
            await runLoop(options.name, runner);
          },
        );
        progress.clear();
        await finish(opened, options.name, options);
      },
    );

  store(command.command("resume <run>").description("go on with a run where it stands"))
    .addOption(imagesOption())
    .addOption(overlapOption())
    .addOption(budgetOption())
    .action(async (run: string, options: RunOptions) => {
      if (isOnStack(options)) return (await onStack()).resumeOnStack(run, options);
      const opened = await openStore(options.local);
      const { config } = await readRun(opened, run);
      const progress = new Progress({ stream: process.stderr });
      await withLocalRunner(
        opened,
        run,
        { threads: config.threads, imagesFile: options.images, onEvent: showRun(run, opened, progress) },
        async runner => {
          await clearStop(opened, run);
          await runLoop(run, runner);
        },
      );
      progress.clear();
      await finish(opened, run, options);
    });

  store(
    command
      .command("watch <run>")
      .description("print the iterations of a run as they end, until it is done or stopped")
      .option("--every <seconds>", "with --stack: how often to look", seconds, 5),
  ).action(async (run: string, options: RunOptions & { every: number }) => {
    if (isOnStack(options)) return (await onStack()).watchOnStack(run, options);
    await watch(await openStore(options.local), run, options.json === true);
  });

  store(
    command
      .command("stop <run>")
      .description(
        "let a run stop: after the stage at work; in a deployment, after the episodes or the training at work",
      )
      .option("--now", "with --stack: abort what is at work; finished episodes stay"),
  ).action(async (run: string, options: RunOptions & { now?: boolean }) => {
    if (isOnStack(options)) return (await onStack()).stopOnStack(run, options);
    const opened = await openStore(options.local);
    await advanceState(opened, run, await readState(opened, run), {
      kind: "stop",
      reason: "stopped by t1 run stop",
    });
    print(
      options,
      { run, stopped: true },
      `${run} stops after the stage at work; t1 run resume ${run} goes on\n`,
    );
  });

  store(command.command("list").description("list the runs of a store")).action(
    async (options: RunOptions) => {
      if (isOnStack(options)) return (await onStack()).listOnStack(options);
      const opened = await openStore(options.local);
      const runs = await listRuns(opened);
      const rows = runs.map(({ run, kind, done, iterations, state }) => [
        run,
        kind,
        `${done}/${iterations}`,
        state,
      ]);
      print(
        options,
        runs,
        rows.length === 0
          ? `no run in ${opened.url}\n`
          : formatTable(["run", "kind", "iterations", "state"], rows),
      );
    },
  );
}

/** Only then: loading the SDK takes longer than most commands. */
function onStack(): Promise<typeof import("./stack-run.ts")> {
  return import("./stack-run.ts");
}

async function finish(store: ObjectStore, run: string, options: RunOptions): Promise<void> {
  const { state } = await readState(store, run);
  const result = {
    run,
    store: store.url,
    policyVersion: state.policyPublished,
    policy: policyPrefix(run, state.policyPublished),
  };
  print(
    options,
    result,
    `${run} is done: policy ${state.policyPublished} lies in ${store.url}/${result.policy}\n`,
  );
}

async function watch(store: ObjectStore, run: string, json: boolean): Promise<void> {
  const { config } = await readRun(store, run);
  const { iterations } = config.training;
  for (let iteration = 0; iteration < iterations; ) {
    const phase = iterationPrefix(run, iteration);
    if ((await store.head(metricsKey(phase))) !== undefined) {
      const metrics = await readMetrics(store, phase);
      process.stdout.write(
        json
          ? `${JSON.stringify({ iteration, ...metrics })}\n`
          : `${formatIteration(iteration, iterations, metrics)}\n`,
      );
      iteration++;
      continue;
    }
    const { stopped } = (await readState(store, run)).state;
    if (stopped !== undefined) {
      process.stderr.write(`stopped: ${stopped.reason}\n`);
      return;
    }
    await sleep(500);
  }
}

async function clearStop(store: ObjectStore, run: string): Promise<void> {
  await advanceState(store, run, await readState(store, run), { kind: "resume" });
}

async function exists(store: ObjectStore, run: string): Promise<boolean> {
  return (await store.head(runKey(run))) !== undefined;
}
