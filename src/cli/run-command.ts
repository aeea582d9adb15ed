// `t1 run`: start, resume, watch, stop, delete and list runs.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { parseRunConfig } from "../config/parse-config.ts";
import { executionsFolder } from "../local/journals.ts";
import { assertDeletable, deleteRun } from "../run/delete-run.ts";
import { policyPrefix } from "../run/keys.ts";
import { liveOwner } from "../run/owner-lease.ts";
import { readRun } from "../run/run-record.ts";
import { advanceState, readState } from "../run/run-state.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import { confirm } from "./confirm.ts";
import { imagesOption } from "./image-options.ts";
import { type LocalTaskOptions, overlapOption, processesOption } from "./local-options.ts";
import { jsonOption, print } from "./output.ts";
import { readConfig } from "./read-config.ts";
import { listRuns, RUN_COLUMNS, readableRuns, runRow } from "./run-list.ts";
import { samplerOption } from "./sampler-option.ts";
import { sandboxesOption } from "./sandbox-options.ts";
import { changeOption, setOption } from "./set-option.ts";
import { budgetOption, isOnStack, refuseUnheard, seconds, stackOption } from "./stack-option.ts";
import { storeOption } from "./store-option.ts";
import { formatTable } from "./table.ts";
import { watchRun } from "./watch-run.ts";

interface RunOptions extends LocalTaskOptions {
  readonly local: string;
  readonly stack?: string;
  readonly json?: boolean;
}

export function addRunCommand(program: Command): void {
  const command = refuseUnheard(
    program.command("run").description("start, resume, watch, stop, delete and list runs"),
  );
  const store = (sub: Command): Command =>
    sub.addOption(storeOption()).addOption(stackOption()).addOption(jsonOption());

  store(
    command
      .command("start <config>")
      .description("start a run from a YAML config and work on it until it is done"),
  )
    .requiredOption("--name <run>", "name of the run")
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .addOption(processesOption())
    .addOption(samplerOption())
    .addOption(overlapOption())
    .addOption(setOption())
    .option("--continue", "go on with the run when it is there already")
    .addOption(budgetOption())
    .action(
      async (
        configFile: string,
        options: RunOptions & { name: string; set?: readonly string[]; continue?: boolean },
      ) => {
        if (isOnStack(options)) return (await onStack()).startOnStack(configFile, options);
        const config = parseRunConfig(readConfig(configFile), configFile, options.set);
        const { startLocally } = await import("./run-locally.ts");
        const opened = await startLocally(
          options.local,
          { run: options.name, config, configFile, mayBeThere: options.continue === true },
          options,
        );
        await finish(opened, options.name, options);
      },
    );

  store(command.command("resume <run>").description("go on with a run where it stands"))
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .addOption(processesOption())
    .addOption(samplerOption())
    .addOption(overlapOption())
    .addOption(changeOption())
    .addOption(budgetOption())
    .action(async (run: string, options: RunOptions & { set?: readonly string[] }) => {
      if (isOnStack(options)) return (await onStack()).resumeOnStack(run, options);
      const opened = await openStore(options.local, "change");
      const { resumeLocally } = await import("./run-locally.ts");
      await resumeLocally(opened, run, options, options.set);
      await finish(opened, run, options);
    });

  store(
    command
      .command("watch <run>")
      .description("print the iterations of a run as they end, until it is done or stopped")
      .option("--every <seconds>", "with --stack: how often to look", seconds, 5),
  ).action(async (run: string, options: RunOptions & { every: number }) => {
    if (isOnStack(options)) return (await onStack()).watchOnStack(run, options);
    await watchRun(await openStore(options.local, "read"), run, options.json === true);
  });

  store(
    command
      .command("stop <run>")
      .description(
        "let a run stop: after the tasks at work; in a deployment, after the episodes or the training at work",
      )
      .option("--now", "with --stack: abort what is at work; finished episodes stay"),
  ).action(async (run: string, options: RunOptions & { now?: boolean }) => {
    if (isOnStack(options)) return (await onStack()).stopOnStack(run, options);
    const opened = await openStore(options.local, "change");
    const from = await readState(opened, run);
    const { config } = await readRun(opened, run);
    if (from.state.policyPublished >= config.training.iterations)
      return print(options, { run, stopped: false }, `${run} is done already\n`);
    if ((await liveOwner(opened, run, Date.now)) === undefined)
      return print(
        options,
        { run, stopped: false },
        `nobody works on ${run}, so there is nothing to stop; t1 run resume ${run} goes on\n`,
      );
    await advanceState(opened, run, from, {
      kind: "stop",
      reason: "stopped by t1 run stop",
    });
    print(
      options,
      { run, stopped: true },
      `${run} stops after the tasks at work; t1 run resume ${run} goes on\n`,
    );
  });

  command
    .command("delete <run>")
    .description("remove a run with all that it has made: policies, episodes, evaluations")
    .addOption(storeOption())
    .option("--yes", "do not ask")
    .addOption(jsonOption())
    .action(async (run: string, options: { local: string; yes?: boolean; json?: boolean }) => {
      const opened = await openStore(options.local, "change");
      await assertDeletable(opened, run);
      if (options.yes !== true) await confirm(`delete ${run} from ${opened.url}?`);
      const journals = executionsFolder(opened, run);
      const count = await deleteRun(opened, run, () => rm(journals, { recursive: true, force: true }));
      print(options, { run, deleted: true, count }, `${run} is deleted: ${count} objects\n`);
    });

  store(command.command("list").description("list the runs of a store")).action(
    async (options: RunOptions) => {
      if (isOnStack(options)) return (await onStack()).listOnStack(options);
      const opened = await openStore(options.local, "read");
      const runs = await listRuns(opened);
      readableRuns(runs);
      print(
        options,
        runs,
        runs.length === 0 ? `no run in ${opened.url}\n` : formatTable(RUN_COLUMNS, runs.map(runRow)),
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
    `${run} is done: policy ${state.policyPublished} lies in ${placeOf(store, result.policy)}\n`,
  );
}

/** A path as other programs take it, where the store is a folder. */
function placeOf(store: ObjectStore, prefix: string): string {
  return store.url.startsWith("file:") ? join(fileURLToPath(store.url), prefix) : `${store.url}/${prefix}`;
}
