// A killed runner goes on from its journals: one file per execution, one record per line, only ever appended to. A
// record is in the file before anything that follows from it happens, so the runner never repeats work whose result is
// recorded; it repeats work that was under way without a record. Journals survive a killed process; when the machine
// stops, the end may be lost.
import {
  closeSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { attributeFileError, hasCode } from "../files/file-errors.ts";
import type { HistoryEvent } from "./history.ts";
import type { Json } from "./json-value.ts";
import { ProgressRecord } from "./progress.ts";

export const JournalHead = z.strictObject({
  kind: z.literal("execution"),
  format: z.literal(1),
  arn: z.string(),
  machine: z.string(),
  /** The definition at the start of the execution: a restart goes on with it. */
  definition: z.custom<Json>(value => value !== undefined),
  name: z.string(),
  input: z.string(),
  startMs: z.number(),
  /** The task that started it. */
  startedBy: z.string().optional(),
});
export type JournalHead = z.output<typeof JournalHead>;

const EventRecord = z.strictObject({
  kind: z.literal("event"),
  path: z.string(),
  event: z.looseObject({ id: z.int(), previousEventId: z.int(), timestamp: z.string(), type: z.string() }),
});
const Line = z.union([EventRecord, ProgressRecord]);

export interface JournalContents {
  readonly head: JournalHead;
  readonly records: readonly ProgressRecord[];
  /** By path of the execution's top branch: `""`, or that of a Distributed Map's child. */
  readonly events: ReadonlyMap<string, HistoryEvent[]>;
}

export class JournalFile {
  readonly #path: string;
  /** undefined while it is closed, so that a run of many executions does not hold as many open files. */
  #file: number | undefined;

  private constructor(path: string, file: number | undefined) {
    this.#path = path;
    this.#file = file;
  }

  /** @throws Failure StoreUnavailable. @throws InputError when there is a journal of that name already */
  static create(path: string, head: JournalHead): JournalFile {
    try {
      const journal = new JournalFile(path, openSync(path, "ax"));
      journal.#append(head);
      return journal;
    } catch (error) {
      if (hasCode(error, "EEXIST"))
        throw new InputError({ what: "execution exists already", where: path, fix: "choose another name" });
      throw attributeFileError(error, "create", path);
    }
  }

  /**
   * Opens a journal to go on with it, and cuts off a last line that a killed process left half written.
   *
   * @returns undefined when not even its first line is whole: nothing had begun
   * @throws InputError naming the line that is no record
   */
  static reopen(
    path: string,
  ): { readonly journal: JournalFile; readonly contents: JournalContents } | undefined {
    const whole = readWhole(path);
    try {
      if (whole.length === 0) {
        // The name is free again.
        unlinkSync(path);
        return undefined;
      }
      const file = openSync(path, "r+");
      ftruncateSync(file, whole.length);
      closeSync(file);
    } catch (error) {
      throw attributeFileError(error, "open", path);
    }
    return { journal: new JournalFile(path, undefined), contents: parseWhole(path, whole) };
  }

  record(record: ProgressRecord): void {
    this.#append(record);
  }

  event(path: string, event: HistoryEvent): void {
    this.#append({ kind: "event", path, event });
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** Makes one system call per record: once it has returned, the record outlives this process. */
  #append(line: object): void {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    try {
      this.#file ??= openSync(this.#path, "a");
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
    } catch (error) {
      throw attributeFileError(error, "append", this.#path);
    }
  }
}

/**
 * Reads a journal, also while a runner is writing it.
 *
 * @returns undefined when not even its first line is whole. @throws InputError naming the line that is no record
 */
export function readJournal(path: string): JournalContents | undefined {
  const whole = readWhole(path);
  return whole.length === 0 ? undefined : parseWhole(path, whole);
}

/** Reads up to the end of the last whole line. */
function readWhole(path: string): Buffer {
  try {
    const bytes = readFileSync(path);
    return bytes.subarray(0, bytes.lastIndexOf(0x0a) + 1);
  } catch (error) {
    throw attributeFileError(error, "read", path);
  }
}

function parseWhole(path: string, whole: Buffer): JournalContents {
  return parseLines(path, whole.subarray(0, -1).toString("utf8").split("\n"));
}

/** Paths of the journals in a folder. */
export function listJournals(folder: string): string[] {
  return readdirSync(folder)
    .filter(name => name.endsWith(".jsonl"))
    .sort()
    .map(name => join(folder, name));
}

function parseLines(path: string, [first, ...rest]: string[]): JournalContents {
  const head = parseLine(path, 1, first, JournalHead);
  const records: ProgressRecord[] = [];
  const events = new Map<string, HistoryEvent[]>();
  for (const [index, text] of rest.entries()) {
    const line = parseLine(path, index + 2, text, Line);
    if (line.kind !== "event") records.push(line);
    else {
      const list = events.get(line.path) ?? [];
      list.push(line.event);
      events.set(line.path, list);
    }
  }
  return { head, records, events };
}

function parseLine<Schema extends z.ZodType>(
  path: string,
  number: number,
  text: string,
  schema: Schema,
): z.output<Schema> {
  let expected: string;
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    if (parsed.success) return parsed.data;
    expected = z.prettifyError(parsed.error);
  } catch (error) {
    expected = String(error);
  }
  throw new InputError({
    what: "corrupt journal",
    where: `${path}:${number}`,
    expected: `expected a record of this runner: ${expected}`,
    fix: "restore it from a copy, or delete the file and start the execution again",
  });
}
