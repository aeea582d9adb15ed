// What an episode earns that was cut, under each rule of `truncation`, calculated by hand.
import { expect, it } from "vitest";
import type { Chunk } from "../../trajectory/chunk.ts";
import { outcomeOf, toBatch } from "../batch.ts";
import type { PolicyMethod } from "./algorithm.ts";
import { ppo } from "./ppo.ts";

const chunk = (mask: readonly number[]): Chunk => ({
  tokens: new Int32Array(mask.length),
  mask: Uint8Array.from(mask),
  logProbs: new Float32Array(mask.length),
  turns: [],
});
/** One that ended by itself with a reward of 4, and one of two chunks that was cut with a reward of 3. */
const batch = toBatch([
  { id: "0", task: "a", chunks: [chunk([0, 1, 1])], endReason: "completed", reward: 4 },
  { id: "1", task: "b", chunks: [chunk([0, 1]), chunk([0, 0, 1, 1])], endReason: "turn_limit", reward: 3 },
]);
const values = [Float32Array.of(0, 1, 2), Float32Array.of(0, 0.5), Float32Array.of(0, 0, 1, 1.5)];

// With γ = λ = 1 an advantage is what is still to come, less the value: reward or value at the cut.
it.each([
  ["terminal", 3],
  ["zero", 0],
  ["bootstrap", 2],
])("with %s, a cut episode is worth %d", (truncation, worth) => {
  const method = ppo.method({ iterations: 1, truncation, gamma: 1, lambda: 1 }) as PolicyMethod;
  // The critic is asked for a value at the cut by the rule `bootstrap` alone.
  const ends = batch.episodes.map(episode =>
    outcomeOf(episode, method.settings.truncation).bootstrap ? 2 : 0,
  );
  expect(ends).toEqual([0, truncation === "bootstrap" ? 2 : 0]);
  const { advantages, returns } = method.advantages(batch, { values, ends });
  expect(advantages.map(own => [...own])).toEqual([
    [0, 3, 2],
    [0, worth - 0.5],
    [0, 0, worth - 1, worth - 1.5],
  ]);
  expect(returns?.map(own => [...own])).toEqual([
    [0, 4, 4],
    [0, worth],
    [0, 0, worth, worth],
  ]);
});
