import { expect, test } from "vitest";
import { CachedUntilExec } from "./cached-until-exec.ts";

const nothing = async (): Promise<void> => {};

test("what was found stands until something begins", async () => {
  const quiet = new CachedUntilExec<number>();
  let count = 0;
  const find = async () => ++count;
  const look = () => quiet.get(find);
  expect([await look(), await look()]).toEqual([1, 2]); // something may be running
  await quiet.rest(nothing);
  expect([await look(), await look()]).toEqual([3, 3]);
  quiet.begin();
  expect([await look(), await look()]).toEqual([4, 5]);
});

test("what begins while all is being ended may run afterwards", async () => {
  const quiet = new CachedUntilExec<number>();
  let count = 0;
  await quiet.rest(async () => quiet.begin());
  expect([await quiet.get(async () => ++count), await quiet.get(async () => ++count)]).toEqual([1, 2]);
});

test("what could not be found, or ended, is tried again", async () => {
  const quiet = new CachedUntilExec<number>();
  const fail = () => Promise.reject(new Error("no"));
  await expect(quiet.rest(fail)).rejects.toThrow("no");
  let count = 0;
  expect([await quiet.get(async () => ++count), await quiet.get(async () => ++count)]).toEqual([1, 2]);
  await quiet.rest(nothing);
  await expect(quiet.get(fail)).rejects.toThrow("no");
  expect([await quiet.get(async () => 7), await quiet.get(async () => 8)]).toEqual([7, 7]);
});
