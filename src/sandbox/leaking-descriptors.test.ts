import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { expect, test } from "vitest";
import { addLeakingDescriptor, leakingDescriptors, maskLeaks } from "./leaking-descriptors.ts";

const LIST = 'for f in /proc/$$/fd/*; do echo "$(basename "$f") $(readlink "$f")"; done';

/** What a child of this process has open above stderr, but for the shell's own. */
function inheritedBy(stdio: readonly ("ignore" | "pipe" | number)[]): readonly string[] {
  const { stdout } = spawnSync("/bin/sh", ["-c", LIST], { stdio: [...stdio], encoding: "utf8" });
  return stdout.split("\n").filter(line => /^([3-9]|\d\d+) /.test(line) && !line.includes("/proc/"));
}

test("what Node opens is closed in children, so it is no leak", () => {
  const fd = openSync("/etc/passwd", "r");
  expect(leakingDescriptors()).not.toContain(fd);
  expect(inheritedBy(["ignore", "pipe", "ignore"]).join()).not.toContain("/etc/passwd");
  closeSync(fd);
});

test("a registered descriptor reaches children as /dev/null only, until it is forgotten", () => {
  const before = leakingDescriptors();
  const forget = addLeakingDescriptor(40);
  expect(leakingDescriptors()).toEqual([...before, 40]);
  const stdio = maskLeaks(["ignore", "pipe", "ignore"] as const);
  expect(stdio.length).toBeGreaterThan(40);
  expect(inheritedBy(stdio)).toContain("40 /dev/null");
  forget();
  expect(leakingDescriptors()).toEqual(before);
  expect(maskLeaks(["ignore", "pipe"] as const).slice(0, 2)).toEqual(["ignore", "pipe"]);
});

test("what this process inherited itself is found", () => {
  const module = new URL("./leaking-descriptors.ts", import.meta.url).href;
  const script = `import { leakingDescriptors } from "${module}"; console.log(JSON.stringify(leakingDescriptors()));`;
  const run = `exec 77</etc/passwd; exec "${process.execPath}" --input-type=module -e '${script}'`;
  expect(JSON.parse(execFileSync("bash", ["-c", run], { encoding: "utf8" }))).toContain(77);
});
