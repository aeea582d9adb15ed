import { expect, it } from "vitest";
import type { EpisodeRecord } from "../run/records.ts";
import { Cutoff, EpisodeSlots } from "./episode-slots.ts";

it("gives places in the order in which they were asked for, and never more than there are", async () => {
  const slots = new EpisodeSlots(2);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const works = [0, 1, 2, 3].map(number =>
    slots.hold(() => {
      begun.push(number);
      return new Promise<void>(resolve => ends.push(resolve));
    }),
  );
  await new Promise(resolve => setImmediate(resolve));
  expect(begun).toEqual([0, 1]);
  ends[1]();
  await works[1];
  // Who comes now does not pass those that wait.
  const late = slots.hold(async () => begun.push(9));
  await new Promise(resolve => setImmediate(resolve));
  expect(begun).toEqual([0, 1, 2]);
  for (const at of [0, 2]) ends[at]();
  await new Promise(resolve => setImmediate(resolve));
  expect(begun).toEqual([0, 1, 2, 3, 9]);
  ends[3]();
  await Promise.all([...works, late]);
});

it("gives a place free when the work in it fails", async () => {
  const slots = new EpisodeSlots(1);
  await expect(slots.hold(() => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await slots.hold(async () => "next")).toBe("next");
});

it("cuts when enough episodes have ended by themselves: each once, failures and cut ones not", () => {
  const ended = (episode: number, rest: Partial<EpisodeRecord> = {}) =>
    ({ episode, endReason: "completed", ...rest }) as EpisodeRecord;
  const failure = { layer: "sandbox", name: "SandboxLost", retryable: true, detail: "" } as const;
  const cutoff = new Cutoff(2);
  for (const record of [
    ended(0),
    ended(0),
    ended(1, { endReason: "failure", failure }),
    ended(2, { endReason: "cancelled" }),
  ])
    cutoff.count(record);
  expect(cutoff.signal.aborted).toBe(false);
  cutoff.count(ended(3));
  expect(cutoff.signal.aborted).toBe(true);
});
