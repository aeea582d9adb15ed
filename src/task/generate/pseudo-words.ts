// Invented words. A small policy that only ever saw a few hundred real names learns to complete names instead of
// copying them; thousands of invented ones make copying the only thing that works.
import type { RandomStream } from "../../random/stream.ts";
import { DEVELOPMENT_WORDS, HELD_OUT_WORDS, TRAIN_WORDS } from "./words.ts";

const CONSONANTS = [..."bcdfghklmnprstvwz"];
const VOWELS = [..."aeiou"];
const ENDINGS = ["", "r", "n", "l", "t", "st", "ck", "er", "el", "on", "le", "m"];
/** Share of words put together from halves of real ones, which keeps their letter statistics; the rest is syllables. */
const HALVES_SHARE = 0.6;

/** Different invented words of at least three letters, none of them a word of another pool. Sorted. */
export function inventWords(count: number, random: RandomStream): string[] {
  const taken = new Set([...DEVELOPMENT_WORDS, ...HELD_OUT_WORDS]);
  const words = new Set<string>();
  while (words.size < count) {
    const word = random.chance(HALVES_SHARE) ? fromHalves(random) : fromSyllables(random);
    if (word.length >= 3 && !taken.has(word)) words.add(word);
  }
  return [...words].sort();
}

function fromHalves(random: RandomStream): string {
  const first = random.pick(TRAIN_WORDS);
  const second = random.pick(TRAIN_WORDS);
  return first.slice(0, first.length >> 1) + second.slice(second.length >> 1);
}

function fromSyllables(random: RandomStream): string {
  let word = "";
  for (let syllables = 1 + random.integer(2); syllables > 0; syllables--)
    word += random.pick(CONSONANTS) + random.pick(VOWELS);
  return word + random.pick(ENDINGS);
}
