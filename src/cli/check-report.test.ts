import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type CheckEntry, CheckReport } from "./check-report.ts";

const folder = mkdtempSync(join(tmpdir(), "t1-report-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let count = 0;
const newFile = (): string => join(folder, `below/${count++}.jsonl`);

const entry = (path: string, more: Partial<CheckEntry> = {}): CheckEntry => ({
  ...{ path, content: "c1", setting: "bubblewrap", checkedAt: "2026-01-01T00:00:00.000Z", seconds: 1 },
  check: { task: path, passed: true, warnings: [] },
  ...more,
});

function write(file: string, ...entries: readonly CheckEntry[]): void {
  const report = new CheckReport(file);
  for (const one of entries) report.add(one);
  report[Symbol.dispose]();
}

describe("the report of a check", () => {
  test("knows a task by its path, its content and what it was checked with", () => {
    const file = newFile();
    write(file, entry("a"), entry("b", { content: undefined }));
    const report = new CheckReport(file);
    expect(report.find(entry("a"))).toEqual(entry("a"));
    for (const other of [
      entry("a", { content: "c2" }),
      entry("a", { setting: "docker" }),
      entry("c"),
      entry("b", { content: undefined }),
    ])
      expect(report.find(other)).toBeUndefined();
  });

  test("that cannot be written is no bug, and says which file it is", () => {
    const file = newFile();
    const report = new CheckReport(file);
    report[Symbol.dispose](); // as a disk that is full: every write fails
    expect(() => report.add(entry("a"))).toThrow(
      expect.objectContaining({ name: "StoreUnavailable", message: expect.stringContaining(file) }),
    );
  });

  test("of a task checked twice holds the last result", () => {
    const file = newFile();
    write(file, entry("a"), entry("a", { seconds: 9 }));
    expect(new CheckReport(file).find(entry("a"))?.seconds).toBe(9);
  });

  test("goes on after half a line, which is no result", () => {
    const file = newFile();
    write(file, entry("a"));
    appendFileSync(file, JSON.stringify(entry("b")).slice(0, -7));
    write(file, entry("c"));
    const report = new CheckReport(file);
    expect(["a", "b", "c"].map(path => report.find(entry(path))?.path)).toEqual(["a", undefined, "c"]);
    expect(readFileSync(file, "utf8").split("\n")).toHaveLength(4);
  });

  test("takes the lines of two that write at once", () => {
    const file = newFile();
    const [one, two] = [new CheckReport(file), new CheckReport(file)];
    for (let index = 0; index < 20; index++) (index % 2 ? one : two).add(entry(`${index}`));
    const report = new CheckReport(file);
    for (let index = 0; index < 20; index++) expect(report.find(entry(`${index}`))).toBeDefined();
  });

  test("is not written into another kind of file", () => {
    const file = join(folder, "notes.txt");
    writeFileSync(file, "one\ntwo\n");
    expect(() => new CheckReport(file)).toThrow(/cannot be used: it is no report.*notes\.txt.*--report/s);
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\n");
  });
});
