// Makes tasks from families: one goal, or two goals in one instruction.
import { deriveSeed } from "../../random/seed.ts";
import { RandomStream } from "../../random/stream.ts";
import { FILE_FAMILIES } from "./file-families.ts";
import type { Check, Commands, Family } from "./goal.ts";
import { HELD_OUT_FAMILIES, LOOK_FAMILIES } from "./look-families.ts";
import { TEXT_FAMILIES } from "./text-families.ts";
import { World, type WorldFile } from "./world.ts";

/** The training families. Their order must not change, because it decides which pairs are held out. */
export const TRAIN_FAMILIES: readonly Family[] = [...FILE_FAMILIES, ...TEXT_FAMILIES, ...LOOK_FAMILIES];

export type TaskKind = "single" | "pair" | "held-out-pair" | "held-out-family";

export interface GeneratedTask {
  readonly kind: TaskKind;
  readonly families: readonly string[];
  readonly looks: boolean;
  readonly instruction: string;
  readonly files: ReadonlyMap<string, WorldFile>;
  readonly solution: Commands;
  readonly checks: readonly Check[];
  /** A demonstration with a beginner's mistakes, for supervised training. */
  readonly demonstration: Commands;
}

/** Shares of faulty demonstrations; imitating perfect ones would leave reinforcement learning nothing to do. */
interface DemonstrationFlaws {
  /** A goal is attempted in one of its flawed ways. */
  readonly wrong: number;
  /** The second goal is forgotten. */
  readonly skipped: number;
  /** A needless `ls` comes first. */
  readonly needlessLook: number;
}

const FLAWS: DemonstrationFlaws = { wrong: 0.3, skipped: 0.25, needlessLook: 0.15 };

/** The same seed and words give the same task. */
export function composeTask(kind: TaskKind, words: readonly string[], seed: string): GeneratedTask {
  const random = new RandomStream(deriveSeed(seed, "task"));
  const families = chooseFamilies(kind, random);
  const world = new World(words, random);
  const goals = families.map(family => family.build(world));
  // Adds a file unrelated to the task, so that the folder's only file need not be the right one.
  if (random.chance(0.5)) world.write(world.name(".txt"), world.lines(1));
  const joint = random.pick([" Then: ", " Also: ", " "]);
  const demonstrate = new RandomStream(deriveSeed(seed, "demonstration"));
  const shown = goals.length > 1 && demonstrate.chance(FLAWS.skipped) ? goals.slice(0, 1) : goals;
  const commands = shown.flatMap(goal =>
    demonstrate.chance(FLAWS.wrong) ? demonstrate.pick(goal.flawed) : goal.solution,
  );
  const startsWithLook = demonstrate.chance(FLAWS.needlessLook) && !commands.includes("ls");
  return {
    kind,
    families: families.map(family => family.name),
    looks: families.some(family => family.looks),
    instruction: goals.map(goal => goal.instruction).join(joint),
    files: world.files,
    solution: goals.flatMap(goal => goal.solution),
    checks: goals.flatMap(goal => goal.checks),
    demonstration: startsWithLook ? ["ls", ...commands] : commands,
  };
}

/** A quarter of the ordered pairs of families is never trained on. */
export function isHeldOutPair(first: Family, second: Family): boolean {
  return (TRAIN_FAMILIES.indexOf(first) + TRAIN_FAMILIES.indexOf(second)) % 4 === 0;
}

function chooseFamilies(kind: TaskKind, random: RandomStream): Family[] {
  if (kind === "single") return [random.pick(TRAIN_FAMILIES)];
  if (kind === "held-out-family") return [random.pick(HELD_OUT_FAMILIES)];
  for (;;) {
    const [first, second] = [random.pick(TRAIN_FAMILIES), random.pick(TRAIN_FAMILIES)];
    if (canStandTogether(first, second) && isHeldOutPair(first, second) === (kind === "held-out-pair"))
      return [first, second];
  }
}

function canStandTogether(first: Family, second: Family): boolean {
  if (first === second) return false;
  const spoils = (a: Family, b: Family): boolean => a.needsLoneFile === true && b.writesOtherEndings === true;
  return !spoils(first, second) && !spoils(second, first);
}
