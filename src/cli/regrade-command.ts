// `t1 regrade`: grades episodes of a run again by what was kept of them.
import { type Command, Option } from "commander";
import { nearestName } from "../config/nearest-name.ts";
import { InputError } from "../failure/errors.ts";
import { imageServices } from "../rollout/image-services.ts";
import { readPlan } from "../rollout/plan.ts";
import { type RegradedEpisode, regrade } from "../rollout/regrade.ts";
import { evaluationPrefix, iterationPrefix, type PhasePrefix, planKey } from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { openSandboxes, type SandboxKind } from "../sandbox/open-sandboxes.ts";
import { VerifierModeName } from "../settings/grading-config.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import type { VerifierMode } from "../verifier/run-verifier.ts";
import { imagesOption } from "./image-options.ts";
import { jsonOption, print } from "./output.ts";
import { parsePositiveCount } from "./parse-count.ts";
import { Progress } from "./progress.ts";
import { sandboxesOption } from "./sandbox-options.ts";
import { storeOption } from "./store-option.ts";
import { formatTable } from "./table.ts";

/** Of the tasks that there are, so many are named where another was asked for. */
const NAMED_TASKS = 10;

interface RegradeOptions {
  readonly local: string;
  readonly mode?: VerifierMode;
  readonly task?: string;
  readonly iteration?: number;
  readonly evaluation?: string;
  readonly pool?: string;
  readonly sandboxes: SandboxKind;
  readonly images?: string;
  readonly json?: boolean;
}

export function addRegradeCommand(program: Command): void {
  program
    .command("regrade <run>")
    .description("grade kept episodes again, without the agent; writes new scores beside the old ones")
    .addOption(
      new Option("--mode <mode>", "where tests run; the run's verifier.mode when left out").choices(
        VerifierModeName.options,
      ),
    )
    .option("--task <name>", "only episodes of this task")
    .option(
      "--iteration <n>",
      "only this iteration, counted from 1 as on screen; all when left out",
      parsePositiveCount,
    )
    .option("--evaluation <name>", "an evaluation instead of iterations; wants --pool")
    .option("--pool <dir>", "folder of the tasks; the run's own pool when left out")
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .addOption(storeOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nA run keeps what its episodes left when its config says verifier.keepFiles: true. Files that a hardened verifier had left out were not kept.",
    )
    .action(async (run: string, options: RegradeOptions) => {
      const store = await openStore(options.local, "change");
      const { config } = await readRun(store, run);
      const phases = await phasesOf(store, run, options);
      if (options.task !== undefined) await assertPlanned(store, phases, options.task);
      const progress = new Progress({ stream: process.stderr });
      progress.begin("grading again");
      const sandboxes = await openSandboxes(options.sandboxes);
      const results: (RegradedEpisode & { readonly phase: string })[] = [];
      try {
        const images = imageServices(options.images, sandboxes);
        for (const phase of phases) {
          await regrade(
            {
              phase,
              poolFolder: options.pool ?? config.tasks.pool,
              mode: options.mode ?? config.verifier.mode,
              rewardConfig: config.reward,
              task: options.task,
              now: () => new Date(),
            },
            { store, sandboxes, images, onEpisode: episode => results.push({ phase, ...episode }) },
          );
        }
      } finally {
        progress.clear();
        await sandboxes[Symbol.asyncDispose]();
      }
      print(options, results, table(results));
    });
}

function table(results: readonly (RegradedEpisode & { readonly phase: string })[]): string {
  const graded = results.filter(({ key }) => key !== undefined);
  const changed = graded.filter(({ before, after }) => before !== after);
  const notKept =
    graded.length < results.length ? "; nothing was kept of the others (verifier.keepFiles)" : "";
  const summary = `${graded.length} of ${results.length} episodes graded again, ${changed.length} with another reward${notKept}\n`;
  const rows = changed.map(({ episode, task, before, after, cause }) => [
    `${episode}`,
    task,
    before === undefined ? "-" : `${before}`,
    `${after}`,
    cause ?? "",
  ]);
  return rows.length === 0
    ? summary
    : formatTable(["episode", "task", "before", "after", "cause"], rows) + summary;
}

async function phasesOf(
  store: ObjectStore,
  run: string,
  { iteration, evaluation, pool }: RegradeOptions,
): Promise<readonly PhasePrefix[]> {
  if (evaluation !== undefined && pool === undefined)
    throw new InputError({
      what: "an evaluation's tasks lie in a pool of its own",
      where: "--evaluation",
      fix: "add --pool",
    });
  const wanted =
    evaluation !== undefined
      ? [evaluationPrefix(run, evaluation)]
      : iteration !== undefined
        ? [iterationPrefix(run, iteration - 1)]
        : undefined;
  for (const phase of wanted ?? []) {
    if ((await store.head(planKey(phase))) !== undefined) continue;
    throw new InputError({
      what: "nothing was planned there",
      where: phase,
      fix: "t1 run list shows what there is",
    });
  }
  if (wanted !== undefined) return wanted;
  const found: PhasePrefix[] = [];
  for (let number = 0; ; number++) {
    const phase = iterationPrefix(run, number);
    if ((await store.head(planKey(phase))) === undefined) return found;
    found.push(phase);
  }
}

/** @throws InputError when no episode of these phases is one of the task */
async function assertPlanned(
  store: ObjectStore,
  phases: readonly PhasePrefix[],
  task: string,
): Promise<void> {
  const plans = await Promise.all(phases.map(phase => readPlan(store, phase)));
  const names = [...new Set(plans.flat().map(planned => planned.task))].sort();
  if (names.includes(task)) return;
  const more = names.length > NAMED_TASKS ? ` and ${names.length - NAMED_TASKS} more` : "";
  const there = names.length === 0 ? "none yet" : `${names.slice(0, NAMED_TASKS).join(", ")}${more}`;
  const meant = nearestName(task, names);
  throw new InputError({
    what: "no episode of this task",
    where: `--task ${task}`,
    expected: meant === undefined ? `the episodes are of ${there}` : `did you mean ${meant}?`,
    fix: "leave out --task to grade the episodes of all tasks",
  });
}
