// The state of a run over a store, whatever its kind.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { stateKey } from "../../src/run/keys.ts";
import {
  advanceState,
  applyMove,
  createState,
  type Move,
  type RunState,
  readState,
} from "../../src/run/run-state.ts";
import { encodeJson } from "../../src/store/json.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";

const start: RunState = { rolloutsClosed: 0, policyPublished: 0, pool: { epoch: 0, position: 0 } };
const pool = { epoch: 0, position: 16 };
const close = (iteration: number, at = pool): Move => ({ kind: "close-rollouts", iteration, pool: at });
const publish = (version: number): Move => ({ kind: "publish-policy", version });

/** @param temporaryStore makes an empty store, for one test */
export function runStateContract(temporaryStore: () => Promise<ObjectStore>): void {
  describe("run state", () => {
    it("goes through iterations, one closed and published after the other", async () => {
      const store = await temporaryStore();
      let current = await createState(store, "demo", start.pool);
      for (const iteration of [0, 1, 2]) {
        current = await advanceState(
          store,
          "demo",
          current,
          close(iteration, { epoch: iteration, position: 3 }),
        );
        current = await advanceState(store, "demo", current, publish(iteration + 1));
      }
      expect(current.state).toEqual({
        rolloutsClosed: 3,
        policyPublished: 3,
        pool: { epoch: 2, position: 3 },
      });
      expect(await readState(store, "demo")).toEqual(current);
    });

    it.each<[string, RunState, Move]>([
      [
        "closing an iteration twice with another cursor",
        { ...start, rolloutsClosed: 1, pool },
        close(0, start.pool),
      ],
      ["closing before the earlier policy is published", { ...start, rolloutsClosed: 1, pool }, close(1)],
      ["leaving out an iteration", start, close(1)],
      ["going back in the pool", { ...start, pool }, close(0, { epoch: 0, position: 15 })],
      ["going back an epoch", { ...start, pool: { epoch: 1, position: 0 } }, close(0)],
      ["publishing what is not closed", start, publish(1)],
      ["leaving out a version", { ...start, rolloutsClosed: 1 }, publish(2)],
      ["publishing an old version", { ...start, rolloutsClosed: 3, policyPublished: 3 }, publish(2)],
    ])("does not allow %s", (_, state, move) => {
      expect(() => applyMove(state, move)).toThrow(/^illegal move of the run's state \(state=.*move=/);
    });

    it("lets a stage make its move again, without a write", async () => {
      const store = await temporaryStore();
      const created = await createState(store, "demo", start.pool);
      const closed = await advanceState(store, "demo", created, close(0));
      expect(await advanceState(store, "demo", closed, close(0))).toBe(closed);
      const published = await advanceState(store, "demo", closed, publish(1));
      expect(await advanceState(store, "demo", published, publish(1))).toBe(published);
      expect(await readState(store, "demo")).toEqual(published);
    });

    it("does not move on what another runner has moved", async () => {
      const store = await temporaryStore();
      const created = await createState(store, "demo", start.pool);
      await advanceState(store, "demo", created, close(0));
      await expect(
        advanceState(store, "demo", created, close(0, { epoch: 0, position: 1 })),
      ).rejects.toMatchObject({
        name: "OwnerLost",
        retryable: false,
      });
      expect((await readState(store, "demo")).state).toEqual({ ...start, rolloutsClosed: 1, pool });
    });

    it("is stopped by anybody at any time, which is told as such to whoever moves it", async () => {
      const store = await temporaryStore();
      const created = await createState(store, "demo", start.pool);
      const closed = await advanceState(store, "demo", created, close(0));
      await advanceState(store, "demo", created, { kind: "stop", reason: "x" });
      await expect(advanceState(store, "demo", closed, publish(1))).rejects.toMatchObject({
        name: "RunStopped",
      });
      await advanceState(store, "demo", await readState(store, "demo"), { kind: "resume" });
      const { state } = await advanceState(store, "demo", closed, publish(1));
      expect(state).toEqual({ rolloutsClosed: 1, policyPublished: 1, pool });
    });

    it("of many that move at once lets one", async () => {
      const store = await temporaryStore();
      const created = await createState(store, "demo", start.pool);
      const moves = Array.from({ length: 8 }, (_, position) =>
        advanceState(store, "demo", created, close(0, { epoch: 0, position })),
      );
      const moved = (await Promise.allSettled(moves)).flatMap(result =>
        result.status === "fulfilled" ? [result.value] : [],
      );
      expect(moved).toEqual([await readState(store, "demo")]);
    });

    it("stands still while it is stopped, keeps the first reason, and goes on after resume", () => {
      const closed = applyMove(start, close(0));
      const stopped = applyMove(closed, { kind: "stop", reason: "drift" });
      expect(applyMove(stopped, { kind: "stop", reason: "later" })).toBe(stopped);
      expect(() => applyMove(stopped, publish(1))).toThrow("the run was stopped: drift");
      expect(applyMove(stopped, close(0))).toBe(stopped); // made before the stop
      const resumed = applyMove(stopped, { kind: "resume" });
      expect(resumed).toEqual(closed);
      expect(applyMove(resumed, { kind: "resume" })).toBe(resumed);
      expect(applyMove(resumed, publish(1)).policyPublished).toBe(1);
    });

    it("never leads by more than one, goes back, or forgets why it stopped, whatever is tried", () => {
      const move = fc.oneof(
        fc.record({
          kind: fc.constant("close-rollouts" as const),
          iteration: fc.nat(4),
          pool: fc.record({ epoch: fc.nat(2), position: fc.nat(3) }),
        }),
        fc.record({ kind: fc.constant("publish-policy" as const), version: fc.nat(4) }),
        fc.record({ kind: fc.constant("stop" as const), reason: fc.constantFrom("a", "b") }),
        fc.record({ kind: fc.constant("resume" as const) }),
      );
      fc.assert(
        fc.property(fc.array(move, { maxLength: 40 }), moves => {
          let state = start;
          for (const next of moves) {
            let after: RunState;
            try {
              after = applyMove(state, next);
            } catch {
              continue;
            }
            expect([0, 1]).toContain(after.rolloutsClosed - after.policyPublished);
            expect(after.rolloutsClosed - state.rolloutsClosed).toBeGreaterThanOrEqual(0);
            expect(after.policyPublished - state.policyPublished).toBeGreaterThanOrEqual(0);
            expect(after.pool.epoch * 10 + after.pool.position).toBeGreaterThanOrEqual(
              state.pool.epoch * 10 + state.pool.position,
            );
            if (state.stopped !== undefined && next.kind !== "resume") expect(after).toBe(state);
            state = after;
          }
        }),
      );
    });

    it("is made once, and not found where it is not", async () => {
      const store = await temporaryStore();
      await expect(readState(store, "demo")).rejects.toThrow("no such run: runs/demo/state.json");
      await createState(store, "demo", start.pool);
      await expect(createState(store, "demo", pool)).rejects.toThrow("the run exists already");
      expect((await readState(store, "demo")).state).toEqual(start);
    });

    it("that cannot be is refused when it is read", async () => {
      const store = await temporaryStore();
      const impossible = [
        { ...start, rolloutsClosed: 2 },
        { ...start, policyPublished: 1 },
        { ...start, rolloutsClosed: -1, policyPublished: -1 },
        { ...start, rolloutClosed: 0 },
        { ...start, stopped: { reason: "" } },
      ];
      for (const [index, state] of impossible.entries()) {
        await store.put(stateKey(`run-${index}`), encodeJson(state), { ifNoneMatch: "*" });
        await expect(readState(store, `run-${index}`), `${index}`).rejects.toMatchObject({
          name: "InputError",
        });
      }
    });
  });
}
