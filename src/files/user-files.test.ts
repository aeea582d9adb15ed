import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listUserFolder, readUserFileAsync, readUserText } from "./user-files.ts";

const ABOUT = { what: "the config", expected: "a YAML file" };
const SOMEBODY = 65_534;

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-user-files-"));
  chmodSync(folder, 0o755);
  mkdirSync(join(folder, "folder"));
  writeFileSync(join(folder, "binary"), Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0xff, 0]));
  writeFileSync(join(folder, "latin-1"), Buffer.from("gr\xfc\xdfe", "latin1"));
  writeFileSync(join(folder, "cut"), Buffer.from("ß").subarray(0, 1));
  symlinkSync("circle", join(folder, "circle"));
  writeFileSync(join(folder, "huge"), "");
  truncateSync(join(folder, "huge"), 3 * 2 ** 30); // holes: no byte of it is on the disk
  writeFileSync(join(folder, "long"), "");
  truncateSync(join(folder, "long"), 65 * 2 ** 20);
  writeFileSync(join(folder, "locked"), "x", { mode: 0o000 });
  mkdirSync(join(folder, "locked folder"), { mode: 0o000 });
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Root may read everything: it becomes somebody else meanwhile. */
function asSomebody<Result>(work: () => Result): Result {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) process.seteuid?.(SOMEBODY);
  try {
    return work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

test.each([
  ["missing", "got nothing", "check the path"],
  ["folder", "got a folder", "name a file"],
  ["binary/below", "got a path that goes through a file", "check the path"],
  ["circle", "got links that lead in a circle", "remove the link"],
  ["binary", "got 6 bytes that are not UTF-8", "save it as UTF-8"],
  ["latin-1", "got 5 bytes that are not UTF-8", "save it as UTF-8"],
  ["cut", "got 1 bytes that are not UTF-8", "save it as UTF-8"],
  ["huge", "got a file of 2 GiB or more", "name another file"],
  ["long", "got 68157440 bytes, too many for a text", "name another file"],
  ["locked", "may not read", "allow it (chmod a+r"],
  ["locked folder/x", "may not read", "allow it (chmod a+r"],
])("%s is bad input that names the file and what to do", (name, got, fix) => {
  const file = join(folder, name);
  const read = () => asSomebody(() => readUserText(file, ABOUT));
  expect(read).toThrow(expect.objectContaining({ name: "InputError" }));
  expect(read).toThrow(`cannot read the config: ${file}: expected a YAML file, `);
  expect(read).toThrow(got);
  expect(read).toThrow(`fix: ${fix}`);
});

test("a folder that cannot be listed, and a file read on the side, say the same", async () => {
  const locked = join(folder, "locked folder");
  expect(() => asSomebody(() => listUserFolder(locked, ABOUT))).toThrow("may not read");
  expect(() => listUserFolder(join(folder, "binary"), ABOUT)).toThrow("goes through a file");
  await expect(
    readUserFileAsync(join(folder, "missing"), { ...ABOUT, ifMissing: "make one" }),
  ).rejects.toThrow("fix: make one");
});

test("what can be read is handed over as it is", () => {
  const file = join(folder, "text");
  writeFileSync(file, "\ufeffß\r\n");
  expect(readUserText(file, ABOUT)).toBe("\ufeffß\r\n");
});
