// Where the executions of a run on this machine are written down: beside the run in a store that is a folder, else in a
// folder of this clone, since a journal grows and an object of a bucket cannot. A session is one runner's executions, or
// those of several runners of which each went on where the one before was killed.
//   runs/<run>/executions/<session>/<machine>@<execution>.jsonl
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import type { HistoryEvent } from "../asl/history.ts";
import { listJournals, readJournal } from "../asl/journal-file.ts";
import { sha256 } from "../files/sha256.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { ROOT } from "./synthesized-assembly.ts";

/** Of runs; an evaluation that a person asks for begins with another letter, since it is never gone on with. */
const RUN_SESSION = /^s\d+$/;

export function executionsFolder(store: ObjectStore, run: string): string {
  const root = store.url.startsWith("file:")
    ? fileURLToPath(store.url)
    : join(ROOT, ".t1/executions", sha256(Buffer.from(store.url)).slice(0, 16));
  return join(root, "runs", run, "executions");
}

/** Copies the journals of executions that have ended into a store that is no folder, so that they outlive this machine. */
export async function keepJournals(
  store: ObjectStore,
  run: string,
  { folder, session }: { readonly folder: string; readonly session: string },
): Promise<void> {
  if (store.url.startsWith("file:")) return;
  for (const path of listJournals(folder)) {
    if (isOver(readJournal(path)?.events.get("")))
      await putOnce(store, `runs/${run}/executions/${session}/${basename(path)}`, readFileSync(path));
  }
}

/** The newest session of a run, undefined where it has none on this machine. */
export function newestSession(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  const sessions = readdirSync(folder).filter(name => RUN_SESSION.test(name));
  return sessions.sort((a, b) => Number(a.slice(1)) - Number(b.slice(1))).at(-1);
}

/**
 * Whether a session's runner was killed: an execution has no end, and those that have none were started with the
 * definitions that would be used now. What a runner of another version began is begun anew; the store holds what it did.
 *
 * @param definitions by name of the machine
 */
export function canGoOn(folder: string, definitions: Readonly<Record<string, string>>): boolean {
  const open = listJournals(folder)
    .map(path => readJournal(path))
    .filter(journal => journal !== undefined && !isOver(journal.events.get("")));
  return (
    open.length > 0 &&
    open.every(journal => {
      const { machine, definition } = journal?.head ?? {};
      const current = definitions[machine ?? ""];
      return current !== undefined && isDeepStrictEqual(definition, JSON.parse(current));
    })
  );
}

export interface StateAtWork {
  /** `run-s1-i000003` */
  readonly execution: string;
  readonly states: readonly string[];
}

/** Executions that are at work at once write to as many journals: the run's, an iteration's, an evaluation's. */
const NEWEST = 3;

/** The states at work in the newest session, as far as their executions were written down; the outermost first. */
export function statesAtWork(folder: string): readonly StateAtWork[] {
  const session = newestSession(folder);
  if (session === undefined) return [];
  return listJournals(join(folder, session))
    .map(path => ({ path, changedMs: statSync(path).mtimeMs }))
    .sort((a, b) => b.changedMs - a.changedMs)
    .slice(0, NEWEST)
    .flatMap(({ path }) => {
      const { head, events } = readJournal(path) ?? {};
      const own = events?.get("");
      if (head === undefined || own === undefined || isOver(own)) return [];
      return [{ startMs: head.startMs, execution: head.name, states: openStates(own) }];
    })
    .sort((a, b) => a.startMs - b.startMs)
    .map(({ execution, states }) => ({ execution, states }));
}

/** Entered and not left. */
function openStates(events: readonly HistoryEvent[]): string[] {
  const open: string[] = [];
  for (const event of events) {
    const { name } = (event.stateEnteredEventDetails ?? event.stateExitedEventDetails ?? {}) as {
      readonly name?: string;
    };
    if (name === undefined) continue;
    if (event.type.endsWith("Entered")) open.push(name);
    else open.splice(open.lastIndexOf(name), 1);
  }
  return open;
}

function isOver(events: readonly HistoryEvent[] | undefined): boolean {
  return /^Execution(Succeeded|Failed|TimedOut|Aborted)$/.test(events?.at(-1)?.type ?? "");
}
