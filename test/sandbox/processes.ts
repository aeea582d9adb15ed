// Processes of this machine, for tests that look for leftovers.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The process that starts bubblewrap sandboxes, and the one beside each sandbox, give themselves this command line. */
export const SPAWNER = "t1";
/** The script of the process that holds a driver's terminals, as its command line has it. */
export const TERMINAL_HOST = fileURLToPath(
  new URL("../../src/sandbox/bubblewrap/terminals/terminal-host.ts", import.meta.url),
);

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  /** Words of the command line; empty for a process that is dead and not reaped. */
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
 * The one child of a process, or the one that has a word in its command line. A word counts as a whole: a part of one
 * would also be found in the path of the clone, which is in the command line of every program of ours.
 *
 * @throws when there is none or several: signalling process 0 instead would end the tests
 */
export function onlyChild(parent: number | undefined, word?: string): number {
  const [child, ...others] = listProcesses().filter(
    entry => entry.parent === parent && (word === undefined || entry.words.includes(word)),
  );
  if (child === undefined || others.length > 0)
    throw new Error(
      `expected one child of ${parent}${word === undefined ? "" : ` with the word "${word}"`}, got ${others.length + (child ? 1 : 0)}`,
    );
  return child.pid;
}
