// A few generated tasks in a folder, in groups, as corpora have them.
import { join } from "node:path";
import { generatePool } from "../../src/task/generate/pools.ts";
import { writeTask } from "../../src/task/generate/write-task.ts";

/** @returns paths of the tasks below the folder, sorted */
export async function makePool(folder: string, count: number): Promise<readonly string[]> {
  const paths: string[] = [];
  for (const task of generatePool("demonstrations", { count, seed: 11 })) {
    const name = `task-${paths.length}`;
    const path = join(paths.length % 2 === 0 ? "even" : "odd/deep", name);
    await writeTask(task, { pool: "demonstrations", name, folder: join(folder, path) });
    paths.push(path);
  }
  return paths.sort();
}
