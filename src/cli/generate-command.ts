// `t1 tasks generate`: writes pools of small terminal tasks, or leaves those alone that are there already.
import { readdir, readFile, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { InputError } from "../failure/errors.ts";
import { hasCode } from "../files/file-errors.ts";
import { makeFolders } from "../files/make-folders.ts";
import type { GeneratedTask } from "../task/generate/compose.ts";
import { generatePool, POOL_NAMES, POOLS, type PoolName } from "../task/generate/pools.ts";
import { writeTask } from "../task/generate/write-task.ts";
import { attributeWriteError, jsonOption, print } from "./output.ts";
import { parallel } from "./parallel.ts";
import { parseCount, parsePositiveCount } from "./parse-count.ts";
import { Progress } from "./progress.ts";
import { formatTable } from "./table.ts";

/** Task folders written at once. */
const TASKS_AT_ONCE = 16;

export function addGenerateCommand(tasks: Command): void {
  const pools = POOL_NAMES.map(
    name => `  ${name.padEnd(20)} ${POOLS[name].count} tasks: ${POOLS[name].purpose}`,
  ).join("\n");
  tasks
    .command("generate")
    .description("write pools of small terminal tasks as Harbor folders")
    .addHelpText(
      "after",
      `\nPools:\n${pools}\n\nDemonstrations are written only when --pool names them. The same seed writes the same tasks. A pool that is there already is left alone, or written anew with --force.`,
    )
    .option("--out <dir>", "folder of the pools", ".t1/tasks")
    .addOption(new Option("--pool <name...>", "only these pools").choices(POOL_NAMES))
    .option("--count <n>", "tasks per pool instead of the pool's own number", parsePositiveCount)
    .option("--seed <n>", "seed", parseCount, 0)
    .option("--force", "write pools anew that are there")
    .addOption(jsonOption())
    .action(
      async (options: {
        out: string;
        pool?: PoolName[];
        count?: number;
        seed: number;
        force?: boolean;
        json?: boolean;
      }) => {
        const written = [];
        for (const pool of options.pool ?? POOL_NAMES.filter(name => name !== "demonstrations")) {
          written.push(await generate(pool, join(resolve(options.out), pool), options));
        }
        const rows = written.map(({ pool, count, folder, kept }) => [
          pool,
          `${count}`,
          kept ? "there already" : "written",
          folder,
        ]);
        print(options, written, formatTable(["pool", "tasks", "", "folder"], rows));
      },
    );
}

/** @throws InputError when something else is there, or tasks cannot be written there */
async function generate(
  pool: PoolName,
  folder: string,
  { count = POOLS[pool].count, seed, force }: { count?: number; seed: number; force?: boolean },
) {
  const digits = `${count - 1}`.length;
  const nameOf = (index: number): string => `${pool}-${`${index}`.padStart(digits, "0")}`;
  const there = await entriesOf(folder);
  if (there.length > 0 && !force) {
    const [first] = generatePool(pool, { count, seed });
    if (there.length === count && (await isTask(first, join(folder, nameOf(0)))))
      return { pool, count, folder, kept: true };
    throw new InputError({
      what: "another pool is there",
      where: folder,
      expected: `an empty folder or the same ${count} tasks, got ${there.length} entries`,
      fix: "add --force to write it anew, or choose another --out",
    });
  }
  const foreign = there.find(name => !new RegExp(`^${pool}-\\d+$`).test(name));
  if (foreign !== undefined)
    throw new InputError({
      what: "what is there is no generated pool, and --force would delete it",
      where: join(folder, foreign),
      expected: `nothing but tasks named ${nameOf(0)}`,
      fix: "move it, or choose another --out",
    });
  const progress = new Progress({ stream: process.stderr });
  progress.begin(`writing ${pool}`, count);
  try {
    await rm(folder, { recursive: true, force: true });
    makeFolders(folder);
    let done = 0;
    await parallel(
      [...generatePool(pool, { count, seed })].entries(),
      TASKS_AT_ONCE,
      async ([index, task]) => {
        const name = nameOf(index);
        await writeTask(task, { pool, name, folder: join(folder, name) });
        progress.advance(++done);
      },
    );
  } catch (cause) {
    throw attributeWriteError(cause, "the tasks", folder);
  } finally {
    progress.clear();
  }
  return { pool, count, folder, kept: false };
}

/** None where there is no folder. */
async function entriesOf(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch(error => {
    if (hasCode(error, "ENOENT")) return [];
    throw attributeWriteError(error, "the tasks", folder);
  });
}

/** Of tasks of another seed or count not even the first is the same. */
async function isTask(task: GeneratedTask | undefined, folder: string): Promise<boolean> {
  const instruction = await readFile(join(folder, "instruction.md"), "utf8").catch(() => undefined);
  return task !== undefined && instruction === `${task.instruction}\n`;
}
