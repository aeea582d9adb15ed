// Grading a run again through the command line.
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attemptPrefix, episodePrefix, iterationPrefix, keptFilesKey } from "../../src/run/keys.ts";
import { makeTinyRun, type TinyRun, t1 } from "./tiny-run.ts";

describe("t1 regrade", () => {
  let tiny: TinyRun;
  beforeAll(async () => {
    tiny = await makeTinyRun({
      tasks: 2,
      iterations: 1,
      settings: "rollout:\n  episodes: 2\nverifier:\n  keepFiles: true\n",
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
      expect(episodes).toHaveLength(2);
      for (const { before, after, key } of episodes) {
        expect(after).toBe(before);
        keys.add(key);
      }
    }
    expect(keys.size).toBe(6);
  });

  it("grades no other files than were kept of the episode", { timeout: 120_000 }, async () => {
    const [file, other] = [0, 1].map(episode =>
      join(tiny.store, keptFilesKey(attemptPrefix(episodePrefix(iterationPrefix("kept", 0), episode), 1), 0)),
    );
    const [whole, another] = [readFileSync(file), readFileSync(other)];
    writeFileSync(file, another.equals(whole) ? "" : another);
    expect(await t1("regrade", "kept", "--local", tiny.store)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/not the files that were kept .*000000\/attempt-000001\/files\/0\.tar/),
    });
    writeFileSync(file, whole);
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
    const named = async (task: string) => {
      const { code, stderr } = await t1("regrade", "kept", "--task", task, "--local", tiny.store);
      return [code, stderr];
    };
    const [first = ""] = readdirSync(tiny.pool).sort();
    expect(await named("nowhere-near")).toEqual([
      2,
      expect.stringMatching(new RegExp(`no episode of this task: --task nowhere-near: .* of ${first}, `)),
    ]);
    expect(await named(`${first}x`)).toEqual([2, expect.stringContaining(`did you mean ${first}?`)]);
  });
});
