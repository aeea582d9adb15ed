// `t1 tasks check`: every task of a folder through its gates, in parallel, with a report that a later check goes on from.
import { availableParallelism } from "node:os";
import { basename, join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { Failure, InputError } from "../failure/errors.ts";
import { sha256 } from "../files/sha256.ts";
import { readUserFile } from "../files/user-files.ts";
import { IMAGES_FILE } from "../image/images-file.ts";
import { imageServices } from "../rollout/image-services.ts";
import { openSandboxes, type SandboxKind } from "../sandbox/open-sandboxes.ts";
import { VerifierModeName } from "../settings/grading-config.ts";
import { findTasks } from "../task/find-tasks.ts";
import { hashFolder } from "../task/hash.ts";
import { type CheckServices, checkTask, type TaskCheck } from "../task-gates/check-tasks.ts";
import type { VerifierMode } from "../verifier/run-verifier.ts";
import { type CheckEntry, type CheckKey, CheckReport } from "./check-report.ts";
import { defaultReport } from "./default-report.ts";
import { describeChecks } from "./describe-checks.ts";
import { imagesOption } from "./image-options.ts";
import { type Interruption, interruptOnSignals } from "./interruption.ts";
import { jsonOption, print } from "./output.ts";
import { parallel } from "./parallel.ts";
import { parsePositiveCount } from "./parse-count.ts";
import { Progress } from "./progress.ts";
import { sandboxesOption } from "./sandbox-options.ts";

/** Sandboxes wait more than they compute; far more of them make tests late that wait for a program. */
const AT_ONCE = 2 * availableParallelism();
/** So many tasks in a row that could not be checked: the machine cannot check any. */
const HOPELESS_AFTER = 10;

interface CheckOptions {
  readonly sandboxes: SandboxKind;
  readonly images?: string;
  readonly mode: VerifierMode;
  readonly limit?: number;
  readonly task?: readonly string[];
  readonly atOnce: number;
  readonly report?: string;
  readonly again?: boolean;
  readonly json?: boolean;
}

/** What a check came to. */
interface Checked {
  readonly entries: readonly CheckEntry[];
  /** Tasks that the machine could not check, with the reason. */
  readonly unchecked: readonly { readonly path: string; readonly reason: string }[];
  /** Of the entries, those that the report held already. */
  readonly knownCount: number;
}

export function addCheckCommand(tasks: Command): void {
  tasks
    .command("check <folder>")
    .description(
      "run every task below a folder through its gates: it loads, it can be run here, nothing earns nothing, its solution passes twice",
    )
    .option("--limit <n>", "only the first tasks", parsePositiveCount)
    .option("--task <name...>", "only these tasks, by their path or its last part")
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .addOption(
      new Option("--mode <mode>", "where tests run, as verifier.mode of a run")
        .choices(VerifierModeName.options)
        .default("hardened"),
    )
    .option("--at-once <n>", "tasks at the same time", parsePositiveCount, AT_ONCE)
    .option("--report <file>", "JSON lines, one per task; .t1/checks/FOLDER-HASH.jsonl when left out")
    .option("--again", "check tasks anew that the report knows")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nResults are written to the report as they come. A check that is interrupted or killed goes on from there; tasks whose files, images file, mode or kind of sandboxes changed are checked anew. Exit code 1 says that a task did not pass a gate, 75 that some could not be checked.",
    )
    .action(async (folder: string, options: CheckOptions) => {
      const file = resolve(options.report ?? defaultReport(folder));
      const { entries, unchecked, knownCount } = await check(folder, file, options);
      print(
        options,
        { report: file, unchecked, tasks: entries },
        describeChecks(entries, unchecked, { knownCount, file, width: process.stdout.columns }),
      );
      if (unchecked.length > 0) process.exitCode = 75;
      else if (entries.some(({ check: { passed } }) => !passed)) process.exitCode = 1;
    });
}

async function check(folder: string, file: string, options: CheckOptions): Promise<Checked> {
  const pool = findTasks(folder);
  const names = choose(pool.names, options);
  const report = new CheckReport(file);
  try {
    return await checkAll(pool.folder, names, report, options);
  } finally {
    report[Symbol.dispose]();
  }
}

async function checkAll(
  folder: string,
  names: readonly string[],
  report: CheckReport,
  options: CheckOptions,
): Promise<Checked> {
  const setting = settingOf(options);
  const entries: CheckEntry[] = [];
  const missing: CheckKey[] = [];
  for (const path of names) {
    const key = { path, content: await contentOf(join(folder, path)), setting };
    const known = options.again ? undefined : report.find(key);
    if (known === undefined) missing.push(key);
    else entries.push(known);
  }
  const knownCount = entries.length;
  if (missing.length === 0) return { entries, unchecked: [], knownCount };

  const unchecked: { path: string; reason: string }[] = [];
  const sandboxes = await openSandboxes(options.sandboxes);
  const progress = new Progress({ stream: process.stderr });
  let ending: Promise<void> | undefined;
  const endSandboxes = (): Promise<void> => {
    ending ??= (async () => sandboxes[Symbol.asyncDispose]())();
    return ending;
  };
  const interruption = interruptOnSignals(
    { first: "stopping; the report keeps what was checked", goesOn: "the same command goes on" },
    () => {
      endSandboxes().catch(() => undefined); // whoever waits for it gets the error
    },
  );
  let failuresInARow = 0;
  try {
    const services = { sandboxes, images: imageServices(options.images, sandboxes), mode: options.mode };
    await sandboxes.sweep();
    progress.begin("checking tasks", missing.length);
    await parallel(missing, Math.max(1, options.atOnce), async key => {
      const isHopeless = failuresInARow >= HOPELESS_AFTER;
      const result = isHopeless
        ? "too many tasks before it could not be checked"
        : await checkUnchanged(join(folder, key.path), key.content, services, interruption);
      if (typeof result === "string") {
        failuresInARow++;
        unchecked.push({ path: key.path, reason: result });
      } else {
        failuresInARow = 0;
        const entry = { ...key, checkedAt: new Date().toISOString(), ...result };
        report.add(entry);
        entries.push(entry);
      }
      progress.advance(entries.length + unchecked.length - knownCount);
    });
  } finally {
    progress.clear();
    interruption.end();
    await endSandboxes();
  }
  return { entries: entries.sort((a, b) => (a.path < b.path ? -1 : 1)), unchecked, knownCount };
}

/** @returns why there is no result for the content that the report would name */
async function checkUnchanged(
  folder: string,
  content: string | undefined,
  services: CheckServices,
  interruption: Interruption,
): ReturnType<typeof checkOne> {
  const result = await checkOne(folder, services, interruption);
  const isSame = typeof result === "string" || (await contentOf(folder)) === content;
  return isSame ? result : "its files changed while it was checked";
}

/** What only the machine can cause is tried once more. @returns why it could not be checked */
async function checkOne(
  folder: string,
  services: CheckServices,
  interruption: Interruption,
): Promise<{ readonly seconds: number; readonly check: TaskCheck } | string> {
  for (let attempt = 1; ; attempt++) {
    if (interruption.received()) return "interrupted";
    const startedAt = performance.now();
    try {
      const check = await checkTask(folder, services);
      return { seconds: Math.round((performance.now() - startedAt) / 100) / 10, check };
    } catch (error) {
      if (interruption.received()) return "interrupted";
      if (!(error instanceof Failure)) throw error;
      if (attempt === 2 || !error.retryable) return `${error.name}: ${error.message}`;
    }
  }
}

function choose(
  names: readonly string[],
  { task: wanted, limit }: Pick<CheckOptions, "task" | "limit">,
): readonly string[] {
  const fits = (name: string, asked: string): boolean => name === asked || basename(name) === asked;
  const unknown = wanted?.find(asked => !names.some(name => fits(name, asked)));
  if (unknown !== undefined)
    throw new InputError({
      what: "no such task",
      where: unknown,
      expected: "the path of a task below the folder, or its last part",
      fix: "t1 tasks list names them",
    });
  return names.filter(name => wanted?.some(asked => fits(name, asked)) ?? true).slice(0, limit);
}

function settingOf({ sandboxes, mode, images }: CheckOptions): string {
  const content =
    images === undefined ? "no images file" : sha256(readUserFile(images, IMAGES_FILE)).slice(0, 16);
  return `${sandboxes}, ${mode}, ${content}`;
}

/** One that cannot be read says so when it is checked. */
async function contentOf(folder: string): Promise<string | undefined> {
  try {
    return await hashFolder(folder);
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}
