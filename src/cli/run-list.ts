// The runs of a store, and how far each is.
import type { RunConfig } from "../config/run-config.ts";
import { InputError } from "../failure/errors.ts";
import { runKey } from "../run/keys.ts";
import { liveOwner } from "../run/owner-lease.ts";
import { type RunChange, readRun } from "../run/run-record.ts";
import { readState } from "../run/run-state.ts";
import type { ObjectStore } from "../store/object-store.ts";

interface ReadableRun {
  readonly run: string;
  readonly algorithm: RunConfig["algorithm"];
  readonly createdAt: string;
  readonly done: number;
  readonly iterations: number;
  readonly state: "running" | "done" | "stopped" | "unfinished";
  /** What `t1 run resume --set` changed. */
  readonly changes: readonly RunChange[];
}

interface UnreadableRun {
  readonly run: string;
  readonly state: "unreadable";
  readonly problem: string;
}

export type ListedRun = ReadableRun | UnreadableRun;

export const RUN_COLUMNS = ["run", "algorithm", "iterations", "state"];

export function runRow(found: ListedRun): string[] {
  return found.state === "unreadable"
    ? [found.run, "–", "–", found.state]
    : [found.run, found.algorithm, `${found.done}/${found.iterations}`, found.state];
}

/** @returns those that can be read; of the others it says why not, on stderr */
export function readableRuns(runs: readonly ListedRun[]): readonly ReadableRun[] {
  for (const found of runs)
    if (found.state === "unreadable") process.stderr.write(`t1: ${found.run}: ${found.problem}\n`);
  return runs.filter(found => found.state !== "unreadable");
}

/** A run that cannot be read, e.g. one of another version, hides no other. */
export async function listRuns(store: ObjectStore): Promise<readonly ListedRun[]> {
  const names = await Array.fromAsync(store.folders("runs/"));
  const started = await Promise.all(names.map(run => store.head(runKey(run))));
  return Promise.all(
    names
      .filter((_, index) => started[index] !== undefined)
      .map(run =>
        describeRun(store, run).catch((error: unknown): UnreadableRun => {
          if (error instanceof InputError) return { run, state: "unreadable", problem: error.message };
          throw error;
        }),
      ),
  );
}

async function describeRun(store: ObjectStore, run: string): Promise<ReadableRun> {
  const { config, createdAt, changes = [] } = await readRun(store, run);
  const { state } = await readState(store, run);
  const { iterations } = config.training;
  const done = state.policyPublished;
  const isRunning = await liveOwner(store, run, Date.now);
  const notRunning = done >= iterations ? "done" : state.stopped ? "stopped" : "unfinished";
  return {
    run,
    algorithm: config.algorithm,
    createdAt,
    done,
    iterations,
    state: isRunning ? "running" : notRunning,
    changes,
  };
}
