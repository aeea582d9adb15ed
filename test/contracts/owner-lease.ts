// The owner lease over a store, whatever its kind.
import { describe, expect, it } from "vitest";
import { currentProcess } from "../../src/files/process-identity.ts";
import { ownerKey } from "../../src/run/keys.ts";
import { acquireOwner, type OwnerOptions } from "../../src/run/owner-lease.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

/** A clock that stands until it is moved. */
class TestClock {
  now = Date.UTC(2026, 0, 1);
  readonly read = () => this.now;
}

function optionsFor(clock: TestClock, holder: string, more: Partial<OwnerOptions> = {}): OwnerOptions {
  return { holder, ttlMs: 60_000, clock: clock.read, ...more };
}

/** @param temporaryStore makes an empty store, for one test */
export function ownerLeaseContract(temporaryStore: () => Promise<ObjectStore>): void {
  describe("owner lease", () => {
    it("refuses a second runner and names the first: holder, host, process and until when", async () => {
      const store = await temporaryStore();
      const clock = new TestClock();
      const first = await acquireOwner(
        store,
        "demo",
        optionsFor(clock, "ada", { process: currentProcess() }),
      );
      expect(first.owner).toMatchObject({ generation: 1, holder: "ada" });
      await expect(acquireOwner(store, "demo", optionsFor(clock, "bob"))).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringContaining(
          `runs/demo/owner.json: expected a free run, got generation 1 of ada (host ${currentProcess().host}, process ${process.pid}), until 2026-01-01T00:01:00.000Z`,
        ),
      });
      expect((await acquireOwner(store, "other", optionsFor(clock, "bob"))).owner.generation).toBe(1);
    });

    it("is taken over when it ran out, not a moment before", async () => {
      const store = await temporaryStore();
      const clock = new TestClock();
      await acquireOwner(store, "demo", optionsFor(clock, "ada"));
      clock.now += 59_999;
      await expect(acquireOwner(store, "demo", optionsFor(clock, "bob"))).rejects.toThrow(
        "owned by another runner",
      );
      clock.now += 1;
      const second = await acquireOwner(store, "demo", optionsFor(clock, "bob"));
      expect(second.owner).toMatchObject({ generation: 2, holder: "bob", expiresAtMs: clock.now + 60_000 });
    });

    it("lasts as long as it is renewed", async () => {
      const store = await temporaryStore();
      const clock = new TestClock();
      const first = await acquireOwner(store, "demo", optionsFor(clock, "ada"));
      for (let renewals = 0; renewals < 3; renewals++) {
        clock.now += 50_000;
        await first.renew();
        await expect(acquireOwner(store, "demo", optionsFor(clock, "bob"))).rejects.toThrow(
          "generation 1 of ada",
        );
      }
      // Even late, as long as nobody took the run.
      clock.now += 70_000;
      await first.renew();
      await expect(acquireOwner(store, "demo", optionsFor(clock, "bob"))).rejects.toThrow(
        "generation 1 of ada",
      );
    });

    it("is lost to the one who took it over, which the next renew says", async () => {
      const store = await temporaryStore();
      const clock = new TestClock();
      const first = await acquireOwner(store, "demo", optionsFor(clock, "ada"));
      clock.now += 60_000;
      const second = await acquireOwner(store, "demo", optionsFor(clock, "bob"));
      await expect(first.renew()).rejects.toMatchObject({
        name: "OwnerLost",
        retryable: false,
        message: expect.stringContaining("expected generation 1 of ada, got generation 2 of bob, until"),
      });
      await first.release();
      await second.renew();
    });

    it("is taken over at once from a process that died on this machine, not from one out of sight", async () => {
      const clock = new TestClock();
      const dead = { ...currentProcess(), started: "1" };
      const store = await temporaryStore();
      await acquireOwner(store, "demo", optionsFor(clock, "ada", { process: dead }));
      expect((await acquireOwner(store, "demo", optionsFor(clock, "bob"))).owner.generation).toBe(2);
      const elsewhere = [
        { ...dead, host: "other", boot: "other" },
        { ...dead, boot: "earlier" },
        { ...dead, pidNamespace: "1" },
      ];
      for (const [index, process] of elsewhere.entries()) {
        await acquireOwner(store, `run-${index}`, optionsFor(clock, "ada", { process }));
        await expect(acquireOwner(store, `run-${index}`, optionsFor(clock, "bob"))).rejects.toThrow(
          "owned by another",
        );
      }
    });

    it("is free after release, and release may come twice", async () => {
      const store = await temporaryStore();
      const clock = new TestClock();
      const first = await acquireOwner(store, "demo", optionsFor(clock, "ada"));
      await first.release();
      await first.release();
      await expect(first.renew()).rejects.toMatchObject({ name: "OwnerLost" });
      const second = await acquireOwner(store, "demo", optionsFor(clock, "bob"));
      expect(second.owner.generation).toBe(2);
      await second[Symbol.asyncDispose]();
      expect((await acquireOwner(store, "demo", optionsFor(clock, "cyd"))).owner.generation).toBe(3);
    });

    it("goes to exactly one of many that want it at once, new or run out", async () => {
      const store = await temporaryStore();
      const clock = new TestClock();
      for (const generation of [1, 2, 3]) {
        const tries = Array.from({ length: 8 }, (_, index) =>
          acquireOwner(store, "demo", optionsFor(clock, `h${index}`)),
        );
        const won = (await Promise.allSettled(tries)).flatMap(result =>
          result.status === "fulfilled" ? [result.value] : [],
        );
        expect(won.map(({ owner }) => owner.generation)).toEqual([generation]);
        clock.now += 60_000;
      }
    });

    it("stays ours when the answer to a renewal was lost on the way", async () => {
      const clock = new TestClock();
      const store = await temporaryStore();
      const lease = await acquireOwner(losingAnswers(store), "demo", optionsFor(clock, "ada"));
      clock.now += 1_000;
      await lease.renew();
      await lease.renew();
      expect(lease.owner).toMatchObject({ generation: 1, expiresAtMs: clock.now + 60_000 });
    });

    it("is lost when its object is deleted", async () => {
      const store = await temporaryStore();
      const lease = await acquireOwner(store, "demo", optionsFor(new TestClock(), "ada"));
      await store.delete(ownerKey("demo"));
      await expect(lease.renew()).rejects.toThrow("got no owner");
    });
  });
}

/** A store on a bad network: each replacement arrives, is not answered, and is sent again. */
function losingAnswers(store: ObjectStore): ObjectStore {
  return {
    url: store.url,
    get: key => store.get(key),
    stream: key => store.stream(key),
    head: key => store.head(key),
    list: prefix => store.list(prefix),
    folders: prefix => store.folders(prefix),
    delete: key => store.delete(key),
    put: async (key, body, condition) => {
      const result = await store.put(key, body, condition);
      return "ifMatch" in condition && result.written ? store.put(key, body, condition) : result;
    },
  };
}
