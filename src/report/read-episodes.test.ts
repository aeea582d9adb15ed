import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chat, makeRun, tokenizer } from "../../test/report/make-run.ts";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { chooseEpisodes } from "./choose-episodes.ts";
import { instructionTokens, readEpisodes, receiptAgrees } from "./read-episodes.ts";
import { readRunData } from "./read-run.ts";

describe("an instruction", () => {
  it("is what stands between the fixed parts of the chat template", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 40 }), text => {
        const prompt = Int32Array.from(chat.opening(text));
        expect([...instructionTokens(prompt, chat.opening(""))]).toEqual(tokenizer.encodeText(text));
      }),
    );
  });

  it("is the whole prompt when the template is another one", () => {
    const prompt = Int32Array.from([9, 8, 7]);
    expect(instructionTokens(prompt, [1, 2])).toBe(prompt);
    expect(instructionTokens(prompt, undefined)).toBe(prompt);
  });
});

describe("a receipt made again", () => {
  it("agrees with what was stored, and with nothing else", async () => {
    const store = await temporaryStore();
    await makeRun(store, "r", { iterations: 1, episodes: 1 });
    const [{ chunks }] = await readEpisodes(store, chooseEpisodes(await readRunData(store, "r")));
    if (chunks.kind === "unreadable") throw new Error(chunks.problem);
    const [chunk] = chunks.value;
    const { start, end } = chunk.turns[1];
    expect([receiptAgrees(chunk, 0), receiptAgrees(chunk, 1)]).toEqual([true, true]);
    const tokens = chunk.tokens.slice();
    tokens[start]++;
    expect(receiptAgrees({ ...chunk, tokens }, 1)).toBe(false);
    const logProbs = chunk.logProbs.slice();
    logProbs[end - 1] += 1e-6;
    expect(receiptAgrees({ ...chunk, logProbs }, 1)).toBe(false);
    const [first, second] = chunk.turns;
    for (const wrong of [{ end: 1e6 }, { start: 0 }, { routesStart: -1 }, { routesStart: 1e6 }])
      expect(receiptAgrees({ ...chunk, turns: [first, { ...second, ...wrong }] }, 1)).toBe(false);
  });
});
