// The report of `t1 tasks check`: a file of JSON lines, one per checked task, written as the results come. A check that
// was killed goes on from it. What counts is the last line for a task, its content, and what it was checked with.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { Failure, InputError } from "../failure/errors.ts";
import { makeFolders } from "../files/make-folders.ts";
import { TaskCheck } from "../task-gates/check-tasks.ts";

export const CheckEntry = z.strictObject({
  /** Of the task, below the checked folder. */
  path: z.string(),
  /** Of everything in the task's folder, SHA-256; a task that cannot be read has none and is never known. */
  content: z.string().optional(),
  /** Provider, mode and images file. */
  setting: z.string(),
  checkedAt: z.iso.datetime(),
  seconds: z.number().nonnegative(),
  check: TaskCheck,
});
export type CheckEntry = z.infer<typeof CheckEntry>;

export type CheckKey = Pick<CheckEntry, "path" | "content" | "setting">;

export class CheckReport {
  readonly file: string;
  readonly #entries: ReadonlyMap<string, CheckEntry>;
  readonly #descriptor: number;

  /**
   * Lines that cannot be read are no result: the last one of a process that was killed while it wrote.
   *
   * @throws InputError when the file cannot be written, or is something else
   */
  constructor(file: string) {
    this.file = file;
    try {
      const isThere = existsSync(file);
      if (isThere && !statSync(file).isFile()) throw new Error("it is no file");
      const text = isThere ? readFileSync(file, "utf8") : "";
      const lines = text.split("\n").filter(line => line !== "");
      const entries = lines.flatMap(line => parseLine(line) ?? []);
      if (lines.length > 1 && entries.length === 0) throw new Error("it is no report of a check");
      this.#entries = new Map(entries.map(entry => [textOf(entry), entry]));
      makeFolders(dirname(file));
      this.#descriptor = openSync(file, "a");
      // What follows half a line begins on its own.
      if (text !== "" && !text.endsWith("\n")) writeSync(this.#descriptor, "\n");
    } catch (cause) {
      throw new InputError(
        {
          what: `the report cannot be used: ${cause instanceof Error ? cause.message : cause}`,
          where: file,
          expected: "a file of JSON lines that t1 tasks check wrote, or none",
          fix: "name another one by --report",
        },
        { cause },
      );
    }
  }

  /** The last entry for each task, content and setting. */
  entries(): Iterable<CheckEntry> {
    return this.#entries.values();
  }

  find(key: CheckKey): CheckEntry | undefined {
    return key.content === undefined ? undefined : this.#entries.get(textOf(key));
  }

  /**
   * One write of one line at the end of the file: writers side by side do not mix.
   *
   * @throws Failure StoreUnavailable, e.g. when the disk is full; the next check goes on after what was written
   */
  add(entry: CheckEntry): void {
    const line = Buffer.from(`${JSON.stringify(entry)}\n`);
    try {
      if (writeSync(this.#descriptor, line) < line.length) throw new Error("no space for a whole line");
      fsyncSync(this.#descriptor);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      const text = `cannot write the report: ${this.file}: ${why}\n  fix: make room and check again, which goes on after what it holds`;
      throw new Failure("StoreUnavailable", text, { retryable: false, cause });
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

function textOf({ path, content, setting }: CheckKey): string {
  return JSON.stringify([path, content, setting]);
}

function parseLine(line: string): CheckEntry | undefined {
  try {
    return CheckEntry.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
