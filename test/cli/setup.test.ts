// `npm run setup` on hosts that lack something prints the commands that a person has to run.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const SCRIPT = join(import.meta.dirname, "../../scripts/setup.mjs");
const AS_USER = "data:text/javascript,process.getuid = () => 1000;";

let folder: string;
/** A clone whose npm packages are installed. */
let clone: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-setup-"));
  clone = join(folder, "a b ß/t1");
  for (const path of ["scripts", "node_modules/.bin"]) mkdirSync(join(clone, path), { recursive: true });
  copyFileSync(SCRIPT, join(clone, "scripts/setup.mjs"));
  for (const path of ["package-lock.json", "node_modules/.t1-installed", "node_modules/.bin/node"])
    writeFileSync(join(clone, path), "");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Runs the script where only these programs are installed. They do nothing: all succeed but `failing`. */
function setUp(
  programs: readonly string[],
  { nodeOptions = [], failing }: { readonly nodeOptions?: readonly string[]; readonly failing?: string } = {},
) {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync("/bin/sh", join(bin, "sh"));
  for (const program of programs)
    symlinkSync(program === failing ? "/bin/false" : "/bin/true", join(bin, program));
  const words = [...nodeOptions, join(clone, "scripts/setup.mjs")];
  return spawnSync(process.execPath, words, { encoding: "utf8", env: { PATH: bin } });
}

test.each([
  ["no sudo", ["perl", "tar", "apt-get"]],
  ["a sudo that would ask for a password", ["perl", "tar", "apt-get", "sudo"]],
])("an ordinary user with %s is told the command that installs what is missing", (_, programs) => {
  expect(setUp(programs, { nodeOptions: ["--import", AS_USER], failing: "sudo" })).toMatchObject({
    status: 2,
    stderr:
      "setup: missing: bubblewrap; run: sudo apt-get update && sudo apt-get install -y --no-install-recommends bubblewrap\n",
  });
});

test("a machine without apt-get is told what to install", () => {
  expect(setUp(["perl"])).toMatchObject({
    status: 2,
    stderr: "setup: missing: bubblewrap, tar; install it with your package manager\n",
  });
});

test("nothing is installed where nothing is missing", () => {
  expect(setUp(["bwrap", "perl", "tar"])).toMatchObject({ status: 0, stdout: "", stderr: "" });
});
