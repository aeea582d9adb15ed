// The small world of one generated task: names that do not collide, and the files it starts with.
import type { RandomStream } from "../../random/stream.ts";

export interface WorldFile {
  readonly content: Uint8Array;
  readonly executable: boolean;
}

export class World {
  readonly random: RandomStream;
  /** Paths below the working directory. */
  readonly files = new Map<string, WorldFile>();
  readonly #words: readonly string[];
  readonly #used = new Set<string>();

  constructor(words: readonly string[], random: RandomStream) {
    this.#words = words;
    this.random = random;
  }

  /** A word that this task has not used yet. */
  word(): string {
    for (;;) {
      const word = this.random.pick(this.#words);
      if (this.#used.has(word)) continue;
      this.#used.add(word);
      return word;
    }
  }

  /** A name for a file or folder: a word, sometimes with a digit. */
  name(ending = ""): string {
    const digit = this.random.chance(0.25) ? `${1 + this.random.integer(9)}` : "";
    return this.word() + digit + ending;
  }

  number(): string {
    return `${10 + this.random.integer(990)}`;
  }

  /** One of several ways to say the same. */
  say(...ways: readonly string[]): string {
    return this.random.pick(ways);
  }

  /** Lines of `perLine` fresh words each. */
  lines(count: number, perLine = 1): string[] {
    return Array.from({ length: count }, () => Array.from({ length: perLine }, () => this.word()).join(" "));
  }

  write(path: string, lines: readonly string[]): void {
    this.files.set(path, {
      content: Buffer.from(lines.map(line => `${line}\n`).join("")),
      executable: false,
    });
  }

  writeBytes(path: string, content: Uint8Array): void {
    this.files.set(path, { content, executable: false });
  }
}
