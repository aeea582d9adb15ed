// The log of a storm has a line per fault; each process that writes it may be killed at any moment.
import { appendFileSync, existsSync, readFileSync } from "node:fs";

export class StormLog {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  note(what: string): void {
    appendFileSync(this.#path, `${what}\n`);
  }

  count(what: string): number {
    return this.#lines().filter(line => line === what).length;
  }

  /** @returns counts by kind of line */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const line of this.#lines()) counts[line] = (counts[line] ?? 0) + 1;
    return counts;
  }

  #lines(): string[] {
    return existsSync(this.#path) ? readFileSync(this.#path, "utf8").split("\n").slice(0, -1) : [];
  }
}
