// A clock for tests: it stands still while anything is under way and then jumps to the next timer. Timers of the same
// instant fire in the order they were set, each after the consequences of the one before it have come to rest.
import type { Clock, Timer } from "../../src/asl/clock.ts";

interface Entry {
  readonly timeMs: number;
  readonly order: number;
  callback: (() => void) | undefined;
}

export class VirtualClock implements Clock {
  #nowMs: number;
  #order = 0;
  #holds = 0;
  #isCheckPlanned = false;
  /** Binary heap, ordered by time and then by order. */
  readonly #heap: Entry[] = [];

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  at(timeMs: number, callback: () => void): Timer {
    const entry: Entry = { timeMs: Math.max(timeMs, this.#nowMs), order: this.#order++, callback };
    this.#push(entry);
    this.#planCheck();
    return {
      cancel: () => {
        entry.callback = undefined;
      },
    };
  }

  hold(): () => void {
    this.#holds++;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds--;
      this.#planCheck();
    };
  }

  /** Checks in a setImmediate, which runs after all promise callbacks: nothing more can happen by itself then. */
  #planCheck(): void {
    if (this.#isCheckPlanned || this.#holds > 0 || this.#heap.length === 0) return;
    this.#isCheckPlanned = true;
    setImmediate(() => {
      this.#isCheckPlanned = false;
      if (this.#holds === 0) this.#fireNext();
      this.#planCheck();
    });
  }

  #fireNext(): void {
    for (let entry = this.#pop(); entry !== undefined; entry = this.#pop()) {
      if (entry.callback === undefined) continue;
      this.#nowMs = entry.timeMs;
      entry.callback();
      return;
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(heap[at], heap[parent])) break;
      [heap[at], heap[parent]] = [heap[parent], heap[at]];
      at = parent;
    }
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = at;
      if (left < heap.length && isBefore(heap[left], heap[least])) least = left;
      if (right < heap.length && isBefore(heap[right], heap[least])) least = right;
      if (least === at) return first;
      [heap[at], heap[least]] = [heap[least], heap[at]];
      at = least;
    }
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.timeMs < b.timeMs || (a.timeMs === b.timeMs && a.order < b.order);
}
