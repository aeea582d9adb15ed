import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Links, releaseLink, tryTakeLink } from "./link-lock.ts";

const LOCK = "lock";

class Death extends Error {}

/** One that wants the lock `turns` times; it dies at its step `diesAt`, before or after what the step does. */
interface Actor {
  readonly turns: number;
  readonly diesAt: number;
  readonly isAfter: boolean;
}

const actor = fc.record({
  turns: fc.integer({ min: 1, max: 3 }),
  diesAt: fc.oneof(
    fc.constant(Number.POSITIVE_INFINITY),
    { arbitrary: fc.integer({ min: 1, max: 9 }), weight: 3 }, // early deaths make long chains of heirs
  ),
  isAfter: fc.boolean(),
});

/** Links in memory whose steps come in the order that the scheduler chooses. */
class World {
  readonly links = new Map<string, string>();
  readonly dead = new Set<string>();
  inside = 0;
  finished = 0;
  readonly #scheduler: fc.Scheduler;

  constructor(scheduler: fc.Scheduler) {
    this.#scheduler = scheduler;
  }

  async run(name: string, { turns, diesAt, isAfter }: Actor): Promise<void> {
    let holder = "";
    let stepCount = 0;
    const step = async <Result>(action: () => Result): Promise<Result> => {
      await this.#scheduler.schedule(Promise.resolve(), name);
      const dies = ++stepCount === diesAt;
      if (dies && !isAfter) this.#die(holder);
      const result = action();
      if (dies) this.#die(holder);
      return result;
    };
    const links: Links = {
      create: (path, target) =>
        step(() => !this.links.has(path) && this.links.set(path, target) !== undefined),
      read: path => step(() => this.links.get(path)),
      remove: path =>
        step(() => {
          this.links.delete(path);
        }),
      isDead: other => this.dead.has(other),
    };
    for (let turn = 0; turn < turns; turn++) {
      holder = `${name},${name}-${turn}`;
      while (!(await tryTakeLink(links, LOCK, holder)));
      expect(++this.inside).toBe(1);
      try {
        await step(() => {});
      } finally {
        this.inside--;
      }
      await releaseLink(links, LOCK, holder);
    }
    this.finished++;
  }

  #die(holder: string): void {
    this.dead.add(holder);
    throw new Death();
  }
}

describe("link lock", () => {
  it("has one holder at a time and comes free again, in whatever order steps and deaths come", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(actor, { minLength: 2, maxLength: 7 }),
        async (scheduler, actors) => {
          const world = new World(scheduler);
          let deathCount = 0;
          const running = Promise.all(
            actors.map((one, index) =>
              world.run(`p${index}`, one).catch(error => {
                if (!(error instanceof Death)) throw error;
                deathCount++;
              }),
            ),
          );
          await scheduler.waitFor(running);
          expect(world.finished + deathCount).toBe(actors.length);
          if (deathCount === 0) expect(world.links.size).toBe(0);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
