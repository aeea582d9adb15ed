// Grading a run again through the command line.
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

describe("t1 regrade", () => {
  let tiny: TinyRun;
  beforeAll(async () => {
    tiny = await makeTinyRun({
      tasks: 4,
      iterations: 1,
      settings: "rollout:\n  episodes: 4\nverifier:\n  keepFiles: true\n",
    });
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

  it("comes to the same rewards for a run that kept its files, as often as it is asked", {
    timeout: 120_000,
  }, async () => {
    const started = await t1("run", "start", tiny.config, "--name", "kept", "--local", tiny.store);
    expect(started.code, started.stderr).toBe(0);
    const keys = new Set<string>();
    for (const mode of ["hardened", "shared", "hardened"]) {
      const again = await t1("regrade", "kept", "--local", tiny.store, "--mode", mode, "--json");
      expect(again.code, again.stderr).toBe(0);
      const episodes = JSON.parse(again.stdout) as { before: number; after: number; key: string }[];
      expect(episodes).toHaveLength(4);
      for (const { before, after, key } of episodes) {
        expect(after).toBe(before);
        keys.add(key);
      }
    }
    expect(keys.size).toBe(12);
  });

  it("says what it cannot find", { timeout: 120_000 }, async () => {
    const wrong = [
      ["nothing"],
      ["kept", "--iteration", "7"],
      ["kept", "--evaluation", "x"],
      ["kept", "--mode", "kind"],
    ];
    for (const words of wrong) {
      const { code, stderr } = await t1("regrade", ...words, "--local", tiny.store);
      expect([code, stderr], words.join(" ")).toEqual([2, expect.stringMatching(/\S/)]);
    }
    const none = await t1("regrade", "kept", "--task", "none", "--local", tiny.store);
    expect([none.code, none.stdout]).toEqual([0, expect.stringContaining("0 of 0 episodes")]);
  });
});
