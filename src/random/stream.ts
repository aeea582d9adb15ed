// A stream of random numbers from a derived seed. Generator: xoshiro128** 1.1 (Blackman and Vigna, public domain
// algorithm, https://prng.di.unimi.it/), 32-bit integer arithmetic only, so every machine draws the same numbers.
import { InvariantError } from "../failure/errors.ts";

export class RandomStream {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  /** @param seed 32 hexadecimal digits, as `deriveSeed` returns */
  constructor(seed: string) {
    if (!/^[0-9a-f]{32}$/.test(seed))
      throw new InvariantError("a random stream needs a derived seed", { seed });
    [this.#a, this.#b, this.#c, this.#d] = [0, 8, 16, 24].map(
      at => Number.parseInt(seed.slice(at, at + 8), 16) | 0,
    ) as [number, number, number, number];
    // An all-zero state would stay zero for ever.
    if ((this.#a | this.#b | this.#c | this.#d) === 0) this.#a = 1;
  }

  /** Next 32 random bits as an unsigned integer. */
  bits(): number {
    const scrambled = Math.imul(rotateLeft(Math.imul(this.#b, 5), 7), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = rotateLeft(this.#d, 11);
    return scrambled;
  }

  /** Uniform in [0, 1), 53 bits. */
  uniform(): number {
    return ((this.bits() >>> 5) * 0x4000000 + (this.bits() >>> 6)) / 0x20000000000000;
  }

  /** Uniform integer in [0, bound). */
  integer(bound: number): number {
    if (!(Number.isInteger(bound) && bound > 0))
      throw new InvariantError("integer() needs a positive bound", { bound });
    return Math.floor(this.uniform() * bound);
  }

  /** Standard normal deviate (Box-Muller; the second deviate is thrown away to keep the stream simple). */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }

  /** True with the given probability. */
  chance(probability: number): boolean {
    return this.uniform() < probability;
  }

  /** One element of a non-empty list. */
  pick<T>(list: readonly T[]): T {
    return list[this.integer(list.length)];
  }

  /** A new list in random order (Fisher-Yates). */
  shuffle<T>(list: readonly T[]): T[] {
    const shuffled = [...list];
    for (let last = shuffled.length - 1; last > 0; last--) {
      const other = this.integer(last + 1);
      [shuffled[last], shuffled[other]] = [shuffled[other], shuffled[last]];
    }
    return shuffled;
  }
}

function rotateLeft(value: number, count: number): number {
  return (value << count) | (value >>> (32 - count));
}
