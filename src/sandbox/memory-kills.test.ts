import { spawnSync } from "node:child_process";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { memoryKills, ownMemoryKills } from "./memory-kills.ts";

/** Of control groups of the first version, in which a group may be made beside what runs already. */
const MEMORY = "/sys/fs/cgroup/memory";

function madeGroup(): string | undefined {
  const group = `${MEMORY}/t1-test-${process.pid}`;
  try {
    mkdirSync(group);
    writeFileSync(`${group}/memory.limit_in_bytes`, `${32 << 20}`);
    return group;
  } catch {
    return undefined;
  }
}

test("a container that exceeds its own limit is none of ours", context => {
  const group = madeGroup();
  if (group === undefined) return context.skip("no control group of memory can be made here");
  onTestFinished(() => rmdirSync(group));
  const [all, own] = [memoryKills(), ownMemoryKills()];
  const greedy = `echo $$ > ${group}/cgroup.procs; exec perl -e '$x = "x" x (256 << 20)'`;
  expect(spawnSync("/bin/sh", ["-c", greedy]).signal).toBe("SIGKILL");
  expect(memoryKills()).toBeGreaterThan(all);
  expect(ownMemoryKills()).toBe(own);
});
