// `t1 run`: start, resume, watch, stop and list runs.
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { parseRunConfig } from "../config/parse-config.ts";
import { InputError } from "../failure/errors.ts";
import { readRun } from "../pipeline/run-record.ts";
import { policyPrefix, runKey } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import { liveOwner } from "../store/owner-lease.ts";
import { advanceState, readState } from "../store/run-state.ts";
import { imagesOption } from "./image-options.ts";
import {
  type LocalTaskOptions,
  overlapOption,
  processesOption,
  resumeLocally,
  startLocally,
} from "./run-locally.ts";
import { sandboxesOption } from "./sandbox-options.ts";
import { formatTable } from "./table.ts";
import { watchRun } from "./watch-run.ts";

export const DEFAULT_STORE = ".t1/store";

interface RunOptions extends LocalTaskOptions {
  readonly local: string;
  readonly json?: boolean;
}

export function addRunCommand(program: Command): void {
  const command = program.command("run").description("start, resume, watch, stop and list runs");
  const store = (sub: Command): Command =>
    sub
      .option("--local <store>", "the store: a folder, or s3://BUCKET/PREFIX", DEFAULT_STORE)
      .option("--json", "print the result as JSON on stdout");

  store(
    command
      .command("start <config>")
      .description("start a run from a YAML config and work on it until it is done"),
  )
    .requiredOption("--name <run>", "name of the run")
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .addOption(processesOption())
    .addOption(overlapOption())
    .option(
      "--set <key=value>",
      "a setting that wins over the config's; may be given again, e.g. --set seed=1 --set reward.kind=binary",
      (value: string, before: string[]) => [...before, value],
      [],
    )
    .option("--continue", "go on with the run when it is there already")
    .action(
      async (
        configFile: string,
        options: RunOptions & { name: string; set: string[]; continue?: boolean },
      ) => {
        const opened = await openStore(options.local);
        const config = parseRunConfig(await readConfig(configFile), configFile, options.set);
        await startLocally(
          opened,
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
    .action(async (run: string, options: RunOptions) => {
      const opened = await openStore(options.local);
      await resumeLocally(opened, run, options);
      await finish(opened, run, options);
    });

  store(
    command
      .command("watch <run>")
      .description("print the iterations of a run as they end, until it is done or stopped"),
  ).action(async (run: string, options: RunOptions) => {
    await watchRun(await openStore(options.local), run, options.json === true);
  });

  store(
    command.command("stop <run>").description("let the runner of a run stop after the tasks at work"),
  ).action(async (run: string, options: RunOptions) => {
    const opened = await openStore(options.local);
    await advanceState(opened, run, await readState(opened, run), {
      kind: "stop",
      reason: "stopped by t1 run stop",
    });
    print(
      options,
      { run, stopped: true },
      `${run} stops after the tasks at work; t1 run resume ${run} goes on\n`,
    );
  });

  store(command.command("list").description("list the runs of a store")).action(
    async (options: RunOptions) => {
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

/** Writes a result: JSON for machines, text for people. */
export function print(options: { readonly json?: boolean }, result: unknown, text: string): void {
  process.stdout.write(options.json ? `${JSON.stringify(result, undefined, 2)}\n` : text);
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

async function listRuns(store: ObjectStore) {
  const names = await Array.fromAsync(store.folders("runs/"));
  const started = await Promise.all(names.map(run => store.head(runKey(run))));
  return Promise.all(
    names
      .filter((_, index) => started[index] !== undefined)
      .map(async run => {
        const { config, createdAt } = await readRun(store, run);
        const { state } = await readState(store, run);
        const { iterations } = config.training;
        const done = state.policyPublished;
        return {
          run,
          kind: config.kind,
          createdAt,
          done,
          iterations,
          state: (await liveOwner(store, run, Date.now))
            ? "running"
            : done >= iterations
              ? "done"
              : state.stopped
                ? "stopped"
                : "unfinished",
        };
      }),
  );
}

export async function readConfig(file: string): Promise<string> {
  return readFile(file, "utf8").catch(cause => {
    throw new InputError(
      { what: "cannot read the config", where: file, expected: "a YAML file", fix: "check the path" },
      { cause },
    );
  });
}
