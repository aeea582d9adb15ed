// `t1 evaluate`: a version of a run's policy on a pool, beside the version the run began with.
import { basename } from "node:path";
import type { Command } from "commander";
import type { Comparison, EvaluationSummary } from "../evaluation/summary.ts";
import { InputError } from "../failure/errors.ts";
import { evaluate } from "../pipeline/evaluate.ts";
import { readRun } from "../pipeline/run-record.ts";
import { compare } from "../pipeline/summarise-evaluation.ts";
import { openStore } from "../store/open-store.ts";
import { readState } from "../store/run-state.ts";
import { imagesOption } from "./image-options.ts";
import { withLocalRunner } from "./local-runner.ts";
import { DEFAULT_STORE, print } from "./output.ts";
import { Progress } from "./progress.ts";
import { showRun } from "./run-progress.ts";
import { formatTable, percent, signedInterval } from "./table.ts";

interface EvaluateOptions {
  readonly local: string;
  readonly pool: string;
  readonly policy?: number;
  readonly baseline: number;
  readonly episodes: number;
  readonly images?: string;
  readonly json?: boolean;
}

export function addEvaluateCommand(program: Command): void {
  program
    .command("evaluate <run>")
    .description(
      "run a policy and its baseline on a pool; prints resolved rates, rewards and paired differences with 95 % intervals over tasks",
    )
    .requiredOption("--pool <dir>", "folder of tasks")
    .option("--policy <version>", "version to evaluate; the newest when left out", parseVersion)
    .option("--baseline <version>", "version to compare with", parseVersion, 0)
    .option("--episodes <n>", "episodes per task", parseVersion, 3)
    .option("--local <dir>", "folder that holds the store", DEFAULT_STORE)
    .addOption(imagesOption())
    .option("--json", "print the result as JSON on stdout")
    .addHelpText(
      "after",
      "\nAn evaluation that was made is read, not repeated. Exit code 1 says that more than 2 % of its episodes failed, which makes it invalid.",
    )
    .action(async (run: string, options: EvaluateOptions) => {
      const store = await openStore(options.local);
      const { config } = await readRun(store, run);
      const version = options.policy ?? (await readState(store, run)).state.policyPublished;
      const pool = basename(options.pool);
      const nameOf = (of: number): string => `${pool}-v${`${of}`.padStart(6, "0")}-x${options.episodes}`;
      const progress = new Progress({ stream: process.stderr });
      const result = await withLocalRunner(
        store,
        run,
        { threads: config.threads, imagesFile: options.images, onEvent: showRun(run, store, progress) },
        async runner => {
          const of = (number: number): Promise<EvaluationSummary> =>
            evaluate(
              {
                run,
                name: nameOf(number),
                version: number,
                poolFolder: options.pool,
                repeats: options.episodes,
              },
              runner,
            );
          const baseline = await of(options.baseline);
          const policy = await of(version);
          return {
            run,
            pool,
            baselineVersion: options.baseline,
            policyVersion: version,
            baseline,
            policy,
            gain: await compare(store, run, nameOf(options.baseline), nameOf(version)),
          };
        },
      );
      progress.clear();
      print(
        options,
        result,
        formatResult(pool, options.baseline, version, result.baseline, result.policy, result.gain),
      );
      if (!result.baseline.valid || !result.policy.valid) {
        process.stderr.write(
          "t1: invalid: more than 2 % of the episodes failed, even when they were repeated\n",
        );
        process.exitCode = 1;
      }
    });
}

function formatResult(
  pool: string,
  base: number,
  version: number,
  before: EvaluationSummary,
  after: EvaluationSummary,
  gain: Comparison,
): string {
  const row = (
    name: string,
    from: EvaluationSummary["groups"][string],
    to: EvaluationSummary["groups"][string],
    difference: Comparison["groups"][string],
  ): string[] => [
    name,
    `${difference.taskCount}`,
    percent(from.resolved.mean),
    percent(to.resolved.mean),
    signedInterval(difference.resolved),
    from.reward.mean.toFixed(3),
    to.reward.mean.toFixed(3),
  ];
  const groups = Object.keys(gain.groups).filter(
    name => before.groups[name] !== undefined && after.groups[name] !== undefined,
  );
  const rows = [
    row("all", before, after, gain),
    ...groups.map(name => row(name, before.groups[name], after.groups[name], gain.groups[name])),
  ];
  const missing = `missing episodes: ${before.missingCount} and ${after.missingCount}; resolved if all of them had failed: ${percent(before.worstCase)} and ${percent(after.worstCase)}\n`;
  const header = [
    pool,
    "tasks",
    `resolved v${base}`,
    `resolved v${version}`,
    "difference, 95 % (points)",
    `reward v${base}`,
    `reward v${version}`,
  ];
  return formatTable(header, rows) + missing;
}

function parseVersion(text: string): number {
  const version = Number(text);
  if (Number.isSafeInteger(version) && version >= 0) return version;
  throw new InputError({ what: "not a number", where: text, expected: "a whole number from 0" });
}
