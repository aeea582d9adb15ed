// `t1 tasks`: generate pools, check them, try a task, list them.
import { join } from "node:path";
import type { Command } from "commander";
import { InputError } from "../failure/errors.ts";
import { loadTask } from "../task/load.ts";
import { openPool } from "../task/pool.ts";
import { addCheckCommand } from "./check-command.ts";
import { addGenerateCommand } from "./generate-command.ts";
import { jsonOption, print } from "./output.ts";
import { parallel } from "./parallel.ts";
import { formatTable } from "./table.ts";
import { addTryCommand } from "./try-command.ts";

/** Tasks read at once. */
const TASKS_AT_ONCE = 16;

export function addTasksCommand(program: Command): void {
  const command = program.command("tasks").description("generate, check, try and list tasks");

  addGenerateCommand(command);
  addCheckCommand(command);
  addTryCommand(command);

  command
    .command("list <folder>")
    .description("list the tasks of a pool")
    .addOption(jsonOption())
    .action(async (folder: string, options: { json?: boolean }) => {
      const pool = await openPool(folder);
      const listed = await parallel(pool.names, TASKS_AT_ONCE, name => describeTask(pool.folder, name));
      const rows = listed.map(one =>
        "problem" in one
          ? [one.task, "cannot be loaded", "", "", ""]
          : [one.task, one.kind, one.families, `${one.steps}`, one.hash.slice(0, 12)],
      );
      print(options, listed, formatTable(["task", "kind", "families", "steps", "hash"], rows));
      const problems = listed.flatMap(one => ("problem" in one ? [one.problem] : []));
      if (problems.length > 0)
        throw new InputError(
          `${problems.length} of ${listed.length} tasks cannot be loaded:\n${problems.join("\n")}`,
        );
    });
}

/** @returns the problem where it cannot be loaded, so that the others are listed all the same */
async function describeTask(poolFolder: string, task: string) {
  try {
    const { metadata, steps, hashes } = await loadTask(join(poolFolder, task));
    const families = Array.isArray(metadata.families) ? metadata.families.join("+") : "";
    return { task, kind: String(metadata.kind ?? ""), families, steps: steps.length, hash: hashes.task };
  } catch (error) {
    if (error instanceof InputError) return { task, problem: error.message };
    throw error;
  }
}
