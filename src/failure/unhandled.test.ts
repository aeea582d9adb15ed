import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const UNHANDLED = JSON.stringify(join(import.meta.dirname, "unhandled.ts"));
const ERRORS = JSON.stringify(join(import.meta.dirname, "errors.ts"));

/** Two episodes: the store fails a request of one while it waits for its sandbox, the other has to end. */
const program = (guard: string) => `
  import { setTimeout as sleep } from "node:timers/promises";
  import { Failure } from ${ERRORS};
  import { recordUnhandled } from ${UNHANDLED};
  ${guard}
  const lost = async () => {
    const request = Promise.reject(new Failure("StoreUnavailable", "gone", { retryable: true }));
    await sleep(50);
    await request;
  };
  const other = async () => { await sleep(100); return "other ended"; };
  const [first, second] = await Promise.allSettled([lost(), other()]);
  console.log(first.reason.name, second.value);
`;
const run = (guard: string) =>
  promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program(guard)]);

it("an error that comes before anybody waits is recorded, reaches who waits, and ends nothing else", async () => {
  const { stdout, stderr } = await run("recordUnhandled(text => process.stderr.write(text));");
  expect(stdout).toBe("StoreUnavailable other ended\n");
  expect(stderr).toContain("nobody waited");
  expect(stderr).toContain("t1: StoreUnavailable: gone");
});

it("without the record the process would end, and the other episode with it", async () => {
  await expect(run("")).rejects.toMatchObject({ code: 1, stdout: "" });
});

it("is over when it is ended", async () => {
  await expect(run("recordUnhandled(() => {}).end();")).rejects.toMatchObject({ code: 1 });
});
