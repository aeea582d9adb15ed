// Processes of this machine, for tests that look for what was left over.
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** Words of the command line, empty for what is dead and not reaped. */
  readonly words: readonly string[];
}

export function listProcesses(): readonly ProcessEntry[] {
  return readdirSync("/proc").flatMap(name => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const words = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").slice(0, -1);
      return [{ pid: Number(name), parent: Number(parent), words }];
    } catch {
      return []; // ended while we looked
    }
  });
}

/**
 * The one child of a process that has a word in its command line.
 *
 * @throws when there is none or several: signalling number 0 in its place would end the tests
 */
export function onlyChild(parent: number | undefined, word = ""): number {
  const [child, ...others] = listProcesses().filter(
    entry => entry.parent === parent && entry.words.join(" ").includes(word),
  );
  if (child === undefined || others.length > 0)
    throw new Error(`${parent} has not one child with "${word}" but ${others.length + (child ? 1 : 0)}`);
  return child.pid;
}
