import { describe, expect, it } from "vitest";
import { makeRun, type RunOptions } from "../../test/report/make-run.ts";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { chooseEpisodes } from "./choose-episodes.ts";
import { readRunData } from "./read-run.ts";

async function choose(options: RunOptions) {
  const store = await temporaryStore();
  await makeRun(store, "r", options);
  return chooseEpisodes(await readRunData(store, "r"));
}

describe("chosen episodes", () => {
  it("come from start, middle and end, of every outcome there, none twice", async () => {
    const chosen = await choose({ iterations: 5, episodes: 9 });
    expect(chosen).toHaveLength(12);
    expect(new Set(chosen.map(({ phase, entry }) => `${phase}${entry.episode}`)).size).toBe(12);
    // The last iteration of this run resolves all: the other outcomes come from the one before.
    expect([...new Set(chosen.map(({ place }) => place))]).toEqual([
      "iteration 1",
      "iteration 3",
      "iteration 4",
      "iteration 5",
    ]);
    for (const place of ["start", "middle", "end"])
      expect(chosen.filter(({ why }) => why.startsWith(place))).toHaveLength(4);
    const atStart = chosen.filter(({ place }) => place === "iteration 1").map(({ why }) => why);
    expect(new Set(atStart)).toEqual(
      new Set(["start of the run, resolved", "start of the run, unresolved", "start of the run, cut off"]),
    );
  });

  it("are the same ones whenever they are chosen", async () => {
    const store = await temporaryStore();
    await makeRun(store, "r", { iterations: 3, episodes: 8, evaluated: [0, 3] });
    const choose = async () =>
      chooseEpisodes(await readRunData(store, "r")).map(({ phase, entry }) => `${phase}${entry.episode}`);
    expect(await choose()).toEqual(await choose());
  });

  it("are fewer where there are fewer, and none of a run without iterations", async () => {
    expect(await choose({ iterations: 1, episodes: 2 })).toHaveLength(2);
    expect(await choose({ iterations: 0 })).toEqual([]);
  });

  it("hold a task that an evaluation won, before and after", async () => {
    const chosen = await choose({ iterations: 2, episodes: 4, evaluated: [0, 2] });
    const pairs = chosen.filter(({ place }) => place.startsWith("evaluation"));
    expect(pairs.map(({ version, entry, why }) => [version, entry.resolved, why])).toEqual([
      [0, false, "a task that was won: before"],
      [2, true, "a task that was won: after"],
    ]);
    expect(pairs[0].entry.task).toBe(pairs[1].entry.task);
  });
});
