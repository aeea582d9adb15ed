// Folders on disk for the tests of src/task.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";

/** Content; a link to another path; or null for "not there". */
export type FolderFiles = Readonly<Record<string, string | Uint8Array | { readonly link: string } | null>>;

const made: string[] = [];

afterAll(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Writes files, in the order given, into a new folder of the given name; it is gone when the test file ends. */
export function makeFolder(files: FolderFiles, name = "folder"): string {
  const parent = mkdtempSync(join(tmpdir(), "t1-task-"));
  made.push(parent);
  const folder = join(parent, name);
  mkdirSync(folder);
  for (const [path, content] of Object.entries(files)) {
    if (content === null) continue;
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    if (typeof content === "string" || content instanceof Uint8Array) writeFileSync(file, content);
    else symlinkSync(content.link, file);
  }
  return folder;
}

/** A task that loads, with files added, replaced, or (null) left out. */
export function makeTaskFolder(toml: string, files: FolderFiles = {}): string {
  const whole = {
    "task.toml": toml,
    "instruction.md": "do it\n",
    "environment/Dockerfile": "FROM x\n",
    "tests/test.sh": "",
    ...files,
  };
  return makeFolder(whole, "task-folder");
}
