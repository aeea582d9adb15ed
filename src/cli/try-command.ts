// `t1 tasks try`: a task for a person: a shell in its sandbox, then its own tests.
import { basename } from "node:path";
import { type Command, Option } from "commander";
import { InputError } from "../failure/errors.ts";
import { imageServices } from "../rollout/image-services.ts";
import { type PreparedTask, prepareTask } from "../rollout/prepare.ts";
import { openSandboxes, type SandboxKind } from "../sandbox/open-sandboxes.ts";
import { VerifierModeName } from "../settings/grading-config.ts";
import { AGENTS, asAgent, type Play, type TriedStep, tryTask } from "../task-gates/try-task.ts";
import { isResolved, VERIFIER_CAUSES } from "../verifier/report.ts";
import type { VerifierMode, VerifierRun } from "../verifier/run-verifier.ts";
import { combineReports } from "../verifier/step-rewards.ts";
import { imagesOption } from "./image-options.ts";
import { jsonOption, print } from "./output.ts";
import { type PersonsTerminal, passThrough } from "./pass-through.ts";
import { sandboxesOption } from "./sandbox-options.ts";
import { formatTable } from "./table.ts";

/** A person may take this long for each step; the task's own time is the agent's. */
const PERSON_MS = 12 * 3_600_000;
/** Of what a script printed that gave no assertion. */
const LAST_LINES = 30;

interface TryOptions {
  readonly agent?: keyof typeof AGENTS;
  readonly step?: string;
  readonly mode: VerifierMode;
  readonly sandboxes: SandboxKind;
  readonly images?: string;
  readonly json?: boolean;
}

export function addTryCommand(tasks: Command): void {
  tasks
    .command("try <task>")
    .description("open a shell in a task's sandbox; when it is left, the task's tests grade what was done")
    .addOption(
      new Option(
        "--agent <agent>",
        "instead of you: oracle runs the task's solution, nop does nothing",
      ).choices(Object.keys(AGENTS)),
    )
    .option(
      "--step <step>",
      "begin at this step of several, by number or name; those before it are done by their solutions",
    )
    .addOption(
      new Option("--mode <mode>", "where tests run, as verifier.mode of a run")
        .choices(VerifierModeName.options)
        .default("hardened"),
    )
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nEvery key goes into the sandbox, Ctrl-C too; exit or Ctrl-D leaves the shell. Exit code 1 says that the task is not solved.",
    )
    .action(async (folder: string, options: TryOptions) => {
      const { prepared, from, tried } = await play(folder, options);
      const strategy = prepared.task.config.rewardStrategy;
      const reports = tried.map(({ name, run }) => ({ name, report: run.report }));
      const report = combineReports(reports, strategy);
      const resolved = report !== undefined && isResolved(report) && isComplete(prepared, from, tried);
      print(
        options,
        {
          task: prepared.task.name,
          agent: options.agent ?? "person",
          resolved,
          reward: report?.outcome ?? null,
          steps: tried.map(({ name, run: { report, tampering } }) => ({ name, ...report, tampering })),
        },
        `${tried.map(step => describeStep(step)).join("\n")}\nreward ${report?.outcome ?? "none"}: ${resolved ? "solved" : "not solved"}\n`,
      );
      if (!resolved) process.exitCode = 1;
    });
}

interface Tried {
  readonly prepared: PreparedTask;
  /** Index of the first step that was played. */
  readonly from: number;
  readonly tried: readonly TriedStep[];
}

async function play(folder: string, { agent, step, mode, ...options }: TryOptions): Promise<Tried> {
  const person = agent === undefined ? personsTerminal() : undefined;
  const sandboxes = await openSandboxes(options.sandboxes);
  try {
    await sandboxes.sweep();
    const images = imageServices(options.images, sandboxes);
    const prepared = await prepareTask(folder, { ...images, demonstration: false });
    const from = stepIndex(prepared, step);
    const player = person === undefined ? AGENTS[agent ?? "nop"](prepared) : shell(prepared, person);
    const input = { mode, from, ...(person !== undefined && { agentMs: PERSON_MS }) };
    return { prepared, from, tried: await tryTask(prepared, player, input, sandboxes) };
  } finally {
    await sandboxes[Symbol.asyncDispose]();
  }
}

function personsTerminal(): PersonsTerminal {
  const { stdin: input, stdout: output } = process;
  if (input.isTTY && output.isTTY) return { input, output };
  throw new InputError({
    what: "there is no terminal for a shell",
    where: "standard input and output",
    expected: "a terminal",
    fix: "start it in one, or add --agent oracle or --agent nop",
  });
}

/** A gate that was not passed has ended it. */
function isComplete({ steps }: PreparedTask, from: number, tried: readonly TriedStep[]): boolean {
  return from + tried.length === steps.length;
}

function shell({ task, spec, steps }: PreparedTask, person: PersonsTerminal): Play {
  return async (sandbox, step, index) => {
    const { name, instruction, agent } = step.step;
    const title =
      steps.length === 1 ? task.name : `${task.name}, step ${index + 1}/${steps.length} (${name})`;
    const time = agent.timeoutMs === undefined ? "" : `; an agent has ${agent.timeoutMs / 1000} s`;
    process.stderr.write(
      `\n=== ${title} ===\n\n${instruction.trim()}\n\n=== a shell in ${spec.workdir}; exit or Ctrl-D leaves it and grades${time} ===\n\n`,
    );
    const { columns, rows } = person.output;
    const terminal = await asAgent(sandbox, step).terminal({ columns, rows });
    try {
      await passThrough(terminal, person);
    } finally {
      await terminal[Symbol.asyncDispose]();
    }
    process.stderr.write("\ngrading\n");
    return undefined;
  };
}

/** @throws InputError when there is no such step */
function stepIndex({ task, steps }: PreparedTask, wanted: string | undefined): number {
  if (wanted === undefined) return 0;
  const index = steps.findIndex(({ step }, at) => `${at + 1}` === wanted || step.name === wanted);
  if (index >= 0) return index;
  throw new InputError({
    what: `no such step: ${wanted}`,
    where: task.folder,
    expected: steps
      .map(({ step }, at) => `${at + 1}${step.name === undefined ? "" : ` (${step.name})`}`)
      .join(", "),
    fix: `t1 tasks try ${basename(task.folder)} without --step begins at the first`,
  });
}

function describeStep({ name, run }: TriedStep): string {
  const { report, tampering, files } = run;
  const { tests, outcome, rewards, cause } = report;
  const lines = name === undefined ? [] : [`step ${name}: outcome ${outcome ?? "none"}\n`];
  if (tests.length > 0)
    lines.push(
      formatTable(
        ["assertion", "status"],
        tests.map(test => [test.name, test.status]),
      ),
    );
  else lines.push(`the tests reported no assertion${lastLines(files)}\n`);
  const others = Object.entries(rewards ?? {}).filter(([key]) => key !== "reward");
  for (const [key, value] of others) lines.push(`${key}: ${value}\n`);
  // Without a report by test a reward is graded all the same.
  if (cause !== undefined && !(cause === "no_report" && outcome !== null))
    lines.push(`${cause}: ${VERIFIER_CAUSES[cause]}\n`);
  for (const { path, kind, effect } of tampering?.found ?? [])
    lines.push(`${path} ${effect === "left_out" ? "was left out of the verifier" : "was there"}: ${kind}\n`);
  return lines.join("");
}

function lastLines(files: VerifierRun["files"]): string {
  const printed = Buffer.from(files.get("stdout.txt") ?? [])
    .toString("utf8")
    .trimEnd();
  return printed === "" ? "" : `; they printed\n${printed.split("\n").slice(-LAST_LINES).join("\n")}`;
}
