import { describe, expect, it } from "vitest";
import { makeRun } from "../../test/report/make-run.ts";
import { scanMarkup } from "../../test/report/scan-markup.ts";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { chooseEpisodes } from "./choose-episodes.ts";
import { episodes } from "./episodes.ts";
import { sizeBytesOf } from "./html.ts";
import { readEpisodes } from "./read-episodes.ts";
import { readRunData } from "./read-run.ts";

describe("sampled episodes", () => {
  it("show less of themselves, and then leave some out, rather than need more room", async () => {
    const store = await temporaryStore();
    const texts = { answer: '"'.repeat(3000), observation: '"'.repeat(3000) };
    await makeRun(store, "r", { iterations: 1, episodes: 4, texts });
    const list = await readEpisodes(store, chooseEpisodes(await readRunData(store, "r")));
    const inRoom = (room: number) => episodes(list, undefined, room);
    const sizes = [1_000_000, 150_000, 1000].map(room => {
      const { section, shownCount, leftOutCount } = inRoom(room);
      expect(shownCount + leftOutCount).toBe(4);
      scanMarkup(section.text);
      return [sizeBytesOf(section), shownCount];
    });
    expect(sizes.map(([, shown]) => shown)).toEqual([4, 4, 0]);
    expect(sizes[1][0]).toBeLessThanOrEqual(150_000);
    expect(sizes[0][0]).toBeGreaterThan(150_000);
    expect(inRoom(1000).section.text).toContain("4 episodes left out");
  });
});
