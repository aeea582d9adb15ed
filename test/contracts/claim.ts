// Attempts and admissions over a store, whatever its kind.
import { describe, expect, it } from "vitest";
import { currentProcess } from "../../src/files/process-identity.ts";
import { admit, claimAttempt, readAdmitted, readClaim } from "../../src/run/claim.ts";
import {
  admittedKey,
  attemptPrefix,
  episodeKey,
  episodePrefix,
  evaluationPrefix,
  iterationPrefix,
} from "../../src/run/keys.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

const NEW = { ifNoneMatch: "*" } as const;
const episode = episodePrefix(iterationPrefix("demo", 3), 17);
const claim = { holder: "driver-1", process: currentProcess(), claimedAtMs: 1_000 };

/** @param temporaryStore makes an empty store, for one test */
export function claimContract(temporaryStore: () => Promise<ObjectStore>): void {
  describe("attempts of an episode", () => {
    it("are numbered from 1, without gaps, each with its claim", async () => {
      const store = await temporaryStore();
      for (const expected of [1, 2, 3])
        expect(await claimAttempt(store, episode, { ...claim, claimedAtMs: expected })).toBe(expected);
      expect(await readClaim(store, attemptPrefix(episode, 2))).toEqual({ ...claim, claimedAtMs: 2 });
      await expect(readClaim(store, attemptPrefix(episode, 4))).rejects.toThrow("missing object");
      const other = episodePrefix(evaluationPrefix("demo", "pass4"), 17);
      expect(await claimAttempt(store, other, { holder: "x", claimedAtMs: 0 })).toBe(1);
    });

    it("go to different drivers when many claim at once", async () => {
      const store = await temporaryStore();
      const numbers = await Promise.all(
        Array.from({ length: 12 }, () => claimAttempt(store, episode, claim)),
      );
      expect(numbers.sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
    });

    it("do not reuse the number of an attempt that left files but no claim", async () => {
      const store = await temporaryStore();
      await store.put(`${attemptPrefix(episode, 4)}verifier/report.xml`, "", NEW);
      expect(await claimAttempt(store, episode, claim)).toBe(5);
    });
  });

  describe("admission", () => {
    it("lets the first finished attempt count, for everybody and for ever", async () => {
      const store = await temporaryStore();
      expect(await readAdmitted(store, episode)).toBeUndefined();
      for (const attempt of [1, 2]) await store.put(episodeKey(attemptPrefix(episode, attempt)), "{}", NEW);
      expect(await admit(store, episode, 2)).toBe(2);
      expect(await admit(store, episode, 1)).toBe(2);
      expect(await admit(store, episode, 2)).toBe(2);
      expect(await readAdmitted(store, episode)).toBe(2);
    });

    it("tells all of many that try at once the same attempt", async () => {
      const store = await temporaryStore();
      const attempts = [1, 2, 3, 4, 5, 6];
      for (const attempt of attempts) await store.put(episodeKey(attemptPrefix(episode, attempt)), "{}", NEW);
      const told = await Promise.all(attempts.map(attempt => admit(store, episode, attempt)));
      expect(new Set(told)).toEqual(new Set([await readAdmitted(store, episode)]));
    });

    it("refuses an attempt that did not happen", async () => {
      const store = await temporaryStore();
      await claimAttempt(store, episode, claim);
      await expect(admit(store, episode, 1)).rejects.toMatchObject({ name: "InvariantError" });
      expect(await store.head(admittedKey(episode))).toBeUndefined();
    });
  });
}
