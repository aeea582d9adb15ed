import { expect, it } from "vitest";
import { TaskGate } from "./task-gate.ts";

it("lets the tasks at work end, begins no new one, and says then that it is quiet", async () => {
  let reason: string | undefined;
  const gate = new TaskGate(async () => reason);
  const closing = new AbortController();
  const order: string[] = [];
  const work = Promise.withResolvers<string>();
  const atWork = gate.pass(closing.signal, () => work.promise);
  await new Promise(resolve => setImmediate(resolve));
  reason = "stopped";
  const waiting = gate.pass(closing.signal, async () => order.push("begun"));
  const paused = gate.paused.then(why => order.push(why));
  await new Promise(resolve => setTimeout(resolve, 500));
  expect(order).toEqual([]);
  work.resolve("result");
  expect(await atWork).toBe("result");
  await paused;
  expect(order).toEqual(["stopped"]);
  closing.abort();
  await expect(waiting).rejects.toThrow();
  expect(order).toEqual(["stopped"]);
});

it("does not let a task begin where the run is no longer ours", async () => {
  const gate = new TaskGate(() => Promise.reject(new Error("lost")));
  await expect(gate.pass(new AbortController().signal, async () => "begun")).rejects.toThrow("lost");
});
