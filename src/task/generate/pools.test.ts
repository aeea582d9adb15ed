import { describe, expect, it } from "vitest";
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { type GeneratedTask, isHeldOutPair, TRAIN_FAMILIES } from "./compose.ts";
import { HELD_OUT_FAMILIES } from "./look-families.ts";
import { generatePool, POOL_NAMES, type PoolName } from "./pools.ts";
import { inventWords } from "./pseudo-words.ts";
import { DEVELOPMENT_WORDS, HELD_OUT_WORDS, TRAIN_WORDS } from "./words.ts";

const SAMPLE = 400;
const pools = Object.fromEntries(
  POOL_NAMES.map(name => [name, [...generatePool(name, { count: SAMPLE, seed: 0 })]]),
) as Record<PoolName, GeneratedTask[]>;

describe("generated pools", () => {
  it("share no word between what is trained on, what settings are chosen by and what results are claimed on", () => {
    const lists = [TRAIN_WORDS, DEVELOPMENT_WORDS, HELD_OUT_WORDS];
    const all = lists.flat();
    expect(new Set(all).size).toBe(all.length);
    const invented = new Set(inventWords(6000, new RandomStream(deriveSeed("invented words"))));
    expect([...DEVELOPMENT_WORDS, ...HELD_OUT_WORDS].filter(word => invented.has(word))).toEqual([]);
  });

  it("share no task: neither instruction nor file names of one pool occur in another", () => {
    const groups = [
      [...pools.train, ...pools.demonstrations],
      pools.development,
      [...pools["held-out-parameters"], ...pools["held-out-families"]],
    ];
    const namesOf = (tasks: readonly GeneratedTask[]) =>
      new Set(tasks.flatMap(task => [task.instruction, ...task.files.keys()]));
    const [train, development, heldOut] = groups.map(namesOf);
    expect([...train].filter(name => development.has(name) || heldOut.has(name))).toEqual([]);
    expect([...development].filter(name => heldOut.has(name))).toEqual([]);
  });

  it("train on no held-out pair and no held-out family; only the held-out pools have them", () => {
    const byName = new Map(TRAIN_FAMILIES.map(family => [family.name, family]));
    const isHeldOut = ({ families }: GeneratedTask): boolean => {
      const [first, second] = families.map(name => byName.get(name));
      if (first === undefined) return true;
      return second !== undefined && isHeldOutPair(first, second);
    };
    for (const name of ["train", "demonstrations", "development"] as const)
      expect(pools[name].filter(isHeldOut)).toEqual([]);
    const claimed = pools["held-out-parameters"].filter(task => task.kind === "held-out-pair");
    expect(claimed.length).toBeGreaterThan(100);
    expect(claimed.every(isHeldOut)).toBe(true);
    const families = HELD_OUT_FAMILIES.map(family => family.name);
    expect(new Set(pools["held-out-families"].flatMap(task => task.families))).toEqual(new Set(families));
    expect(TRAIN_FAMILIES.filter(family => families.includes(family.name))).toEqual([]);
  });

  it.each(POOL_NAMES)(
    "%s: a third of the tasks has to be looked at, each has 3 to 10 assertions, none is twice there",
    name => {
      const tasks = pools[name];
      expect(tasks.filter(task => task.looks).length).toBeGreaterThanOrEqual(SAMPLE / 3);
      for (const { checks, instruction } of tasks) {
        expect(checks.length, instruction).toBeGreaterThanOrEqual(3);
        expect(checks.length, instruction).toBeLessThanOrEqual(10);
      }
      expect(new Set(tasks.map(task => task.instruction)).size).toBe(SAMPLE);
    },
  );

  it("use every family", () => {
    expect(new Set(pools.train.flatMap(task => task.families))).toEqual(
      new Set(TRAIN_FAMILIES.map(family => family.name)),
    );
  });

  it("are the same for the same seed, and a longer pool begins with the shorter one", () => {
    expect([...generatePool("train", { count: 20, seed: 0 })]).toEqual(pools.train.slice(0, 20));
    expect([...generatePool("train", { count: 20, seed: 1 })]).not.toEqual(pools.train.slice(0, 20));
  });

  it("have demonstrations that are wrong about as often as they say: near half of pairs and a third of singles", () => {
    const spoilt = (kind: string): number => {
      const tasks = pools.demonstrations.filter(task => task.kind === kind);
      const same = tasks.filter(
        task =>
          task.demonstration.filter(command => command !== "ls").join() ===
          task.solution.filter(command => command !== "ls").join(),
      );
      return 1 - same.length / tasks.length;
    };
    // 0.3 for one goal; 1 − 0.75·0.7² − 0.25·0 = 0.63 for two.
    expect(Math.abs(spoilt("single") - 0.3)).toBeLessThan(0.1);
    expect(Math.abs(spoilt("pair") - 0.63)).toBeLessThan(0.1);
  });
});
