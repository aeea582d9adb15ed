// `t1 evaluate`: a version of a run's policy on a pool, beside the version the run began with.
import { basename, resolve } from "node:path";
import type { Command } from "commander";
import { type Comparison, describeNothingResolved, type EvaluationSummary } from "../evaluation/summary.ts";
import { InputError } from "../failure/errors.ts";
import { assertCanEvaluate } from "../learning/checkpoints.ts";
import { readClosed } from "../rollout/close.ts";
import { assertEvaluationOf } from "../rollout/plan.ts";
import { compare, summarise } from "../rollout/summarise-evaluation.ts";
import { closedKey, evaluationPrefix, type PhasePrefix } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import { imagesOption } from "./image-options.ts";
import { type LocalTaskOptions, processesOption } from "./local-options.ts";
import { jsonOption, print } from "./output.ts";
import { parseNumber, parsePositiveCount } from "./parse-count.ts";
import { Progress } from "./progress.ts";
import { samplerOption } from "./sampler-option.ts";
import { sandboxesOption } from "./sandbox-options.ts";
import { storeOption } from "./store-option.ts";
import { formatTable, percent, signedInterval, signedPoints } from "./table.ts";

interface EvaluateOptions extends LocalTaskOptions {
  readonly local: string;
  readonly pool: string;
  readonly name?: string;
  readonly policy?: number;
  readonly baseline: number;
  readonly episodes: number;
  readonly json?: boolean;
}

export function addEvaluateCommand(program: Command): void {
  program
    .command("evaluate <run>")
    .description(
      "run a policy and its baseline on a pool; prints resolved rates, rewards and paired differences with 95 % intervals over tasks",
    )
    .requiredOption("--pool <dir>", "folder of tasks")
    .option("--name <name>", "what the results are kept as; the name of the pool's folder when left out")
    .option("--policy <version>", "version to evaluate; the newest when left out", parseNumber)
    .option("--baseline <version>", "version to compare with", parseNumber, 0)
    .option("--episodes <n>", "episodes per task", parsePositiveCount, 3)
    .addOption(storeOption())
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .addOption(processesOption())
    .addOption(samplerOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nAn evaluation that was made is read, not repeated; of a pool of the same name with other tasks it is refused. Exit code 1 says that more than 2 % of its episodes failed, which makes it invalid.",
    )
    .action(async (run: string, options: EvaluateOptions) => {
      const store = await openStore(options.local, "change");
      const version = options.policy ?? (await readState(store, run)).state.policyPublished;
      const pool = options.name ?? basename(resolve(options.pool));
      const nameOf = (of: number): string => `${pool}-v${`${of}`.padStart(6, "0")}-x${options.episodes}`;
      const { config } = await readRun(store, run);
      const progress = new Progress({ stream: process.stderr });
      const { withLocalRun } = await import("./local-runner.ts");
      const { localOptions } = await import("./run-locally.ts");
      const result = await withLocalRun(
        store,
        run,
        "evaluation",
        localOptions(store, run, options, progress),
        async () => {
          for (const of of new Set([options.baseline, version]))
            await assertCanEvaluate(store, { run, evaluation: nameOf(of), version: of });
        },
        async ({ evaluate, session }) => {
          const of = async (number: number, which: string): Promise<EvaluationSummary> => {
            const evaluation = nameOf(number);
            const pool = { folder: options.pool, episodes: options.episodes };
            const phase = evaluationPrefix(run, evaluation);
            // One that was closed is only read.
            if ((await store.head(closedKey(phase))) === undefined)
              await evaluate(`${run}-${session}-${which}`, { run, evaluation, version: number, pool });
            else
              await assertEvaluationOf(
                { phase, poolFolder: pool.folder, repeats: pool.episodes, seed: config.seed },
                { store },
              );
            await assertPolicyOf(store, phase, number);
            return summarise({ run, name: evaluation }, { store });
          };
          const baseline = await of(options.baseline, "baseline");
          const policy = await of(version, "policy");
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
      ).finally(() => progress.clear());
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

async function assertPolicyOf(store: ObjectStore, phase: PhasePrefix, version: number): Promise<void> {
  const { policyVersion } = await readClosed(store, phase);
  if (policyVersion === version) return;
  throw new InputError({
    what: "the evaluation of another policy",
    where: closedKey(phase),
    expected: `expected version ${version}, got ${policyVersion}`,
    fix: "restore the object from a copy",
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
    // Tasks are what is drawn: one task says nothing about others.
    difference.taskCount > 1
      ? signedInterval(difference.resolved)
      : `${signedPoints(difference.resolved.mean)} [one task]`,
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
  const nothing = describeNothingResolved(before, after);
  const sentence = nothing ?? describeGain(pool, before, after, gain);
  return `${formatTable(header, rows)}${missing}${sentence}\n`;
}

/** The result in one sentence, the last line of the output. */
function describeGain(
  pool: string,
  before: EvaluationSummary,
  after: EvaluationSummary,
  { resolved, taskCount }: Comparison,
): string {
  const change = `${percent(before.resolved.mean)} of ${pool} were resolved before, ${percent(after.resolved.mean)} after`;
  if (taskCount < 2) return `${change}: one task says nothing about others`;
  const verdict =
    resolved.low > 0
      ? "an improvement"
      : resolved.high < 0
        ? "a loss"
        : "no difference that could be told from chance";
  return `${change}: ${signedInterval(resolved)} points over ${taskCount} tasks, ${verdict}`;
}
