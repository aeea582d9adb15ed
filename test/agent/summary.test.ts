// A conversation that fills its context is handed over; the tests check requests, new conversation, records and training.
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SUMMARY_PROMPT_TOKENS } from "../../src/config/parse-config.ts";
import { gae, rewardsOf } from "../../src/training/advantages.ts";
import { lossWeights } from "../../src/training/loss-weights.ts";
import { decodeChunks, encodeChunks } from "../../src/trajectory/chunk.ts";
import { LAYOUT, type Line } from "./scripted-sampler.ts";
import { type Play, type Played, Stage, tokenizer } from "./stage.ts";

// Terminals wait for real time: what takes a second takes many on a machine that has other work.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stage: Stage;
/** Two turns, a handover, and done. */
let whole: Played;
beforeAll(async () => {
  stage = await Stage.open();
  whole = await stage.play([FILL, FILL, ...CALLS, ...DONE], PLAY);
});
afterAll(() => stage[Symbol.asyncDispose]());

function json(keys: string, taskComplete = false): string {
  const commands = keys === "" ? [] : [{ keystrokes: keys, duration: 0.8 }];
  return JSON.stringify({ analysis: "a", plan: "p", commands, task_complete: taskComplete });
}

/** About 2,000 tokens of observation, of which little stays on the screen. The opening has 1,400, a new one 2,700. */
const FILL = json("seq 1000 1900\n");
const DONE = [json("", true), json("", true)];
const SUMMARY = { freeTokens: 5000, answerTokens: 200, train: true };
const CONTEXT_TOKENS = 8500;
const PLAY: Play = {
  protocol: "terminus-json",
  instruction: "Count.",
  limits: { contextTokens: CONTEXT_TOKENS, observationTokens: 2000, answerTokens: 500 },
  summary: SUMMARY,
};
const CALLS = [
  "I counted <|im_end|> to 1900.",
  "1. Which number is next?\n2. Why?",
  "1. It is 1901.\n2. Nobody knows.",
];

describe.concurrent("a full context", () => {
  it("is handed over by three calls, and the work goes on in a new chunk", () => {
    const { endReason, chunks, transcript, sampler } = whole;
    expect(endReason).toBe("completed");
    expect(chunks.map(({ turns }) => turns.length)).toEqual([2, 1, 1, 1, 2]);
    expect(transcript.map(({ turn, purpose }) => [turn, purpose])).toEqual([
      [0, undefined],
      [1, undefined],
      [1, "summary"],
      [1, "questions"],
      [1, "answers"],
      [2, undefined],
      [3, undefined],
    ]);
    const [, second, summary, questions, answers, next] = sampler.prompts;
    // The old conversation goes on for the summary, and from there for the answers; the questions start afresh.
    expect(
      summary.startsWith(`${second}${FILL}<|im_end|>\n<|im_start|>user\nAnother agent is going to take over`),
    ).toBe(true);
    expect(summary).toContain("Original Task: Count.");
    expect(answers).toBe(
      `${summary}${CALLS[0]}<|im_end|>\n<|im_start|>user\nThe next agent has a few questions for you, please answer each of them one by one in detail:\n\n${CALLS[1]}<|im_end|>\n<|im_start|>assistant\n`,
    );
    expect(questions).toMatch(/^<\|im_start\|>user\nYou are taking over a task/);
    expect(questions).toContain(
      `**Summary from Previous Agent:**\n${CALLS[0]}\n\n**Current Terminal Screen:**\n1862\n`,
    );
    const question = questions.slice("<|im_start|>user\n".length);
    expect(next).toBe(
      `<|im_start|>user\n${transcript[0].prompt}<|im_end|>\n<|im_start|>user\n${question}${CALLS[1]}<|im_end|>\n<|im_start|>user\nHere are the answers the other agent provided.\n\n${CALLS[2]}\n\nContinue working on this task from where the previous agent left off. You can no longer ask questions. Please follow the spec to interact with the terminal.<|im_end|>\n<|im_start|>assistant\n`,
    );
  });

  it("takes what the calls wrote into the next prompts as the very ids that were sampled", () => {
    const { chunks, sampler } = whole;
    const [, , summary, questions, answers] = sampler.generations.map(({ tokens }) => [...tokens]);
    const text = (ids: readonly number[]): string => ids.join(" ");
    const withoutEnd = (ids: readonly number[]): string => text(ids.slice(0, -1));
    const [, , question, answer, work] = chunks.map(({ tokens }) => text([...tokens]));
    expect(question).toContain(withoutEnd(summary));
    expect(answer).toContain(text(summary));
    expect(answer).toContain(withoutEnd(questions));
    expect(work).toContain(text(questions));
    expect(work).toContain(withoutEnd(answers));
    // They were tokenised as no tokenizer does it, so that this is no accident.
    expect(tokenizer.encodeText(CALLS[1])).not.toEqual(questions.slice(0, -1));
  });

  it("leaves each sampled token to be trained once, and each chunk its reward", () => {
    const { chunks, sampler } = whole;
    expect(chunks).toHaveLength(5);
    const masks = chunks.map(({ mask }) => mask);
    const sampled = sampler.generations.reduce((sum, { tokens }) => sum + tokens.length, 0);
    expect(masks.flatMap(mask => [...mask]).filter(bit => bit === 1)).toHaveLength(sampled);
    const weights = lossWeights(
      masks,
      masks.map(() => 0),
      "episode",
    );
    expect(weights.flatMap(list => [...list]).reduce((sum, weight) => sum + weight, 0)).toBeCloseTo(1, 5);
    for (const [index, mask] of masks.entries()) {
      expect(weights[index].every((weight, at) => weight === 0 || mask[at] === 1)).toBe(true);
      const rewards = rewardsOf(mask, 0.5);
      const advantages = gae(rewards, new Float32Array(mask.length).fill(0.25), mask, {
        gamma: 1,
        lambda: 1,
        bootstrap: 0,
      });
      // λ = γ = 1 telescopes to R − V at every trainable token of the chunk.
      expect(advantages.every((value, at) => value === (mask[at] === 1 ? 0.25 : 0))).toBe(true);
    }
  });

  it("records the calls without training them where that is asked for", async () => {
    const { chunks } = await stage.play([FILL, FILL, ...CALLS, ...DONE], {
      ...PLAY,
      summary: { ...SUMMARY, train: false },
    });
    expect(chunks.map(({ untrained }) => untrained)).toEqual([undefined, true, true, true, undefined]);
    expect(decodeChunks(encodeChunks(chunks, LAYOUT), "x")).toEqual(chunks);
  });

  it("drops the newest turns from the old conversation when the calls would not fit behind them", async () => {
    // The calls may take 3 · 1,200 tokens and the requests some 600: of 8,500 that leaves room for the first turn only.
    const { endReason, sampler } = await stage.play([FILL, FILL, ...CALLS, ...DONE], {
      ...PLAY,
      summary: { ...SUMMARY, answerTokens: 1600 },
    });
    expect(endReason).toBe("completed");
    const [first, , summary] = sampler.prompts;
    expect(summary.startsWith(`${first}${FILL}<|im_end|>\n<|im_start|>user\nAnother agent`)).toBe(true);
  });

  it.each<[string, Line[], RegExp]>([
    [
      "summary",
      ["x".repeat(400), "Count on from 1900.", ...DONE],
      /Current terminal state:\nCurrent Terminal Screen:\n[\s\S]*\n\n\nSummary: Count on from 1900\.<\|im_end\|>\n<\|im_start\|>assistant\n$/,
    ],
    [
      "question",
      ["fine", "x".repeat(400), "Count on from 1900.", ...DONE],
      /\n\n\nSummary: Count on from 1900\.<\|im_end\|>\n<\|im_start\|>assistant\n$/,
    ],
    [
      "short summary too",
      ["x".repeat(400), "y".repeat(400), ...DONE],
      /Current terminal state:\nCurrent Terminal Screen:\n[\s\S]*1900\n[^\n]*\n*<\|im_end\|>\n<\|im_start\|>assistant\n$/,
    ],
  ])("goes on from the screen when a %s has no room for its end", async (_, calls, prompt) => {
    const { endReason, sampler, transcript } = await stage.play([FILL, FILL, ...calls], PLAY);
    expect(endReason).toBe("completed");
    expect(sampler.prompts.at(-2)).toMatch(prompt);
    expect(transcript.some(({ purpose }) => purpose === "short-summary")).toBe(true);
  });

  it("ends the episode as cut when a summary frees too little: one would follow the other", async () => {
    const { endReason, transcript } = await stage.play([FILL, FILL, ...CALLS], {
      ...PLAY,
      summary: { ...SUMMARY, freeTokens: 6500 },
    });
    expect(endReason).toBe("context_limit");
    expect(transcript.at(-1)?.purpose).toBe("answers");
  });

  it("makes no summary after the last turn, and none where none is asked for", async () => {
    const last = await stage.play([FILL, FILL], { ...PLAY, limits: { ...PLAY.limits, turns: 2 } });
    expect([last.endReason, last.chunks.length]).toEqual(["turn_limit", 1]);
    const none = await stage.play([FILL, FILL], {
      ...PLAY,
      limits: { ...PLAY.limits, contextTokens: 4000 },
      summary: undefined,
    });
    expect([none.endReason, none.chunks.length]).toEqual(["context_limit", 1]);
  });

  it("has fewer words of ours around it than its budget says", async () => {
    const empty = ["", "", ""];
    const { sampler } = await stage.play([FILL, FILL, ...empty, ...DONE], { ...PLAY, instruction: "" });
    const [, , summary, , answers, next] = sampler.prompts;
    const requests = [summary, answers].map(prompt => prompt.slice(prompt.lastIndexOf("<|im_start|>user")));
    // The config reserves the new conversation's first message for the task, and counts the screen in it.
    const kept = next.slice(next.indexOf("You are taking over"));
    const screen = /\*\*Current Terminal Screen:\*\*\n([\s\S]*)\n\nFirst ask/.exec(kept)?.[1] ?? "";
    const opening = (sampler.prompts[0].split("Task Description:")[0] ?? "").length;
    for (const words of [requests.join("").length, opening + kept.length - screen.length])
      expect(words).toBeLessThan(4 * SUMMARY_PROMPT_TOKENS);
  });
});
