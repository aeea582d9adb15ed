// `t1 episode export` as a person calls it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { AtifTrajectory } from "../../src/agent/atif-schema.ts";
import { readClosed } from "../../src/rollout/close.ts";
import { admit } from "../../src/run/claim.ts";
import { episodePrefix, iterationPrefix } from "../../src/run/keys.ts";
import { openFileStore } from "../../src/store/file-store.ts";
import { makeRun } from "../report/make-run.ts";
import { t1 } from "../run/tiny-run.ts";
import { temporaryFolder } from "../store/temporary-store.ts";

describe("t1 episode export", () => {
  it("writes a stored episode as ATIF, and says what is not there", { timeout: 300_000 }, async () => {
    const folder = await temporaryFolder();
    const [local, out] = [join(folder, "store"), join(folder, "episode.json")];
    const store = await openFileStore(local);
    await makeRun(store, "r", { iterations: 2 });
    const phase = iterationPrefix("r", 1);
    const { episodes } = await readClosed(store, phase);
    const sampled = episodes.find(({ arraysSha256 }) => arraysSha256 !== undefined);
    if (sampled === undefined) throw new Error("no episode has tokens");
    await admit(store, episodePrefix(phase, sampled.episode), sampled.attempt);
    const place = ["--local", local, "--iteration", "2"];
    const [written, missing, wrong] = await Promise.all([
      t1("episode", "export", "r", `${sampled.episode}`, ...place, "--format", "atif", "--out", out),
      t1("episode", "export", "r", "99", ...place),
      t1("episode", "export", "r", "one", ...place),
    ]);
    const { steps, agent } = AtifTrajectory.parse(JSON.parse(await readFile(out, "utf8")));
    expect(steps.filter(({ source }) => source === "agent")).toHaveLength(sampled.turnCount);
    expect(agent.model_name).toBe("r version 1");
    expect([written.code, written.stdout]).toEqual([0, ""]);
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("no such episode")]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("Expected a whole number")]);
  });
});
