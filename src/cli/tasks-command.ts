// `t1 tasks`: generate pools, check them, try a task, list them.
import { readdir, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Command, Option } from "commander";
import { InputError } from "../failure/errors.ts";
import { generatePool, POOL_NAMES, POOLS, type PoolName } from "../task/generate/pools.ts";
import { writeTask } from "../task/generate/write-task.ts";
import { loadTask } from "../task/load.ts";
import { openPool } from "../task/pool.ts";
import { addCheckCommand } from "./check-command.ts";
import { jsonOption, print } from "./output.ts";
import { parallel } from "./parallel.ts";
import { parseCount, parsePositiveCount } from "./parse-count.ts";
import { Progress } from "./progress.ts";
import { formatTable } from "./table.ts";
import { addTryCommand } from "./try-command.ts";

/** Task folders written or read at once. */
const WRITES_AT_ONCE = 16;

export function addTasksCommand(program: Command): void {
  const command = program.command("tasks").description("generate, check, try and list tasks");

  const pools = POOL_NAMES.map(
    name => `  ${name.padEnd(20)} ${POOLS[name].count} tasks: ${POOLS[name].purpose}`,
  ).join("\n");
  command
    .command("generate")
    .description("write pools of small terminal tasks as Harbor folders")
    .addHelpText(
      "after",
      `\nPools:\n${pools}\n\nThe same seed writes the same tasks. A pool that is there already is left alone, or written anew with --force.`,
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

  addCheckCommand(command);
  addTryCommand(command);

  command
    .command("list <folder>")
    .description("list the tasks of a pool")
    .addOption(jsonOption())
    .action(async (folder: string, options: { json?: boolean }) => {
      const pool = await openPool(folder);
      const tasks = await parallel(pool.names, WRITES_AT_ONCE, async name => {
        const { metadata, steps, hashes } = await loadTask(join(pool.folder, name));
        const families = Array.isArray(metadata.families) ? metadata.families.join("+") : "";
        return {
          task: name,
          kind: String(metadata.kind ?? ""),
          families,
          steps: steps.length,
          hash: hashes.task,
        };
      });
      const rows = tasks.map(({ task, kind, families, steps, hash }) => [
        task,
        kind,
        families,
        `${steps}`,
        hash.slice(0, 12),
      ]);
      print(options, tasks, formatTable(["task", "kind", "families", "steps", "hash"], rows));
    });
}

async function generate(
  pool: PoolName,
  folder: string,
  { count = POOLS[pool].count, seed, force }: { count?: number; seed: number; force?: boolean },
) {
  const there = await readdir(folder).catch(() => []);
  if (there.length === count && !force) return { pool, count, folder, kept: true };
  if (there.length > 0 && !force) {
    throw new InputError({
      what: "another pool is there",
      where: folder,
      expected: `${count} tasks or an empty folder, got ${there.length} entries`,
      fix: "add --force to write it anew, or choose another --out",
    });
  }
  await rm(folder, { recursive: true, force: true });
  const progress = new Progress({ stream: process.stderr });
  progress.begin(`writing ${pool}`, count);
  const digits = `${count - 1}`.length;
  let done = 0;
  await parallel(
    [...generatePool(pool, { count, seed })].entries(),
    WRITES_AT_ONCE,
    async ([index, task]) => {
      const name = `${pool}-${`${index}`.padStart(digits, "0")}`;
      await writeTask(task, { pool, name, folder: join(folder, name) });
      progress.advance(++done);
    },
  );
  progress.clear();
  return { pool, count, folder, kept: false };
}
