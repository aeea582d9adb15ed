import { readdir, readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { startProgram } from "../../test/store/program.ts";
import { temporaryFolder } from "../../test/store/temporary-store.ts";
import { withFileLock } from "./file-lock.ts";
import { currentProcess, formatProcess, type ProcessIdentity } from "./process-identity.ts";

const WAIT = { waitMs: 10_000 };

/** This process id, but started at another time: what is left of a process whose id was given to us. */
const dead = { ...currentProcess(), started: "1" };

function holderOf(identity: ProcessIdentity, token: string): string {
  return `${formatProcess(identity)},${token}`;
}

/** @returns how many held the lock at the same time, at most */
async function contend(lock: string, count: number): Promise<number> {
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: count }, async () => {
      await withFileLock(lock, WAIT, async () => {
        most = Math.max(most, ++inside);
        await sleep(1);
        inside--;
      });
    }),
  );
  return most;
}

describe("file lock", () => {
  it("has one holder at a time", async () => {
    const lock = join(await temporaryFolder(), "lock");
    expect(await contend(lock, 20)).toBe(1);
  });

  it("leaves nothing behind", async () => {
    const folder = await temporaryFolder();
    await contend(join(folder, "lock"), 3);
    expect(await readdir(folder)).toEqual([]);
  });

  it("passes from a dead holder to one of many, also when dead heirs stand between", async () => {
    for (const heirs of [[], ["b"], ["b", "c"]]) {
      for (let round = 0; round < 4; round++) {
        const folder = await temporaryFolder();
        const lock = join(folder, "lock");
        const tokens = ["a", ...heirs];
        await symlink(holderOf(dead, "a"), lock);
        for (const [index, heir] of heirs.entries())
          await symlink(holderOf(dead, heir), `${lock}.heir-${tokens[index]}`);
        expect(await contend(lock, 8)).toBe(1);
        expect(await readdir(folder)).toEqual([]);
      }
    }
  });

  it("has one holder at a time although each of them dies", async () => {
    const lock = join(await temporaryFolder(), "lock");
    let inside = 0;
    let deaths = 0;
    const live = async () => {
      for (let lives = 0; lives < 15; lives++)
        await withFileLock(lock, WAIT, async () => {
          expect(++inside).toBe(1);
          await sleep(0);
          inside--;
          const token = `${deaths++}`;
          await symlink(holderOf(dead, token), `${lock}-${token}`);
          await rename(`${lock}-${token}`, lock);
        });
    };
    await Promise.all(Array.from({ length: 8 }, live));
    expect(deaths).toBe(120);
  });

  it("guards a careless counter although every holder ends by dying with the lock in hand", async () => {
    const folder = await temporaryFolder();
    const file = join(folder, "counter");
    await writeFile(file, "0");
    const args = [join(folder, "lock"), file, "25"];
    const programs = Array.from({ length: 5 }, () => startProgram("lock-and-die.ts", args));
    for (const program of programs) expect(await program.ended).toMatchObject({ signal: "SIGKILL" });
    expect(await readFile(file, "utf8")).toBe("125");
  });

  it("is freed when the action fails", async () => {
    const folder = await temporaryFolder();
    const failing = async () => {
      throw new Error("failed inside");
    };
    await expect(withFileLock(join(folder, "lock"), WAIT, failing)).rejects.toThrow("failed inside");
    expect(await readdir(folder)).toEqual([]);
  });

  it("names the holder when it does not get the lock in time", async () => {
    const lock = join(await temporaryFolder(), "lock");
    await withFileLock(lock, WAIT, async () => {
      await expect(withFileLock(lock, { waitMs: 20 }, nothing)).rejects.toMatchObject({
        name: "StoreUnavailable",
        retryable: true,
        message: expect.stringContaining(
          `${lock}: expected the lock to be freed within 20 ms, but process ${process.pid} on ${currentProcess().host} holds it`,
        ),
      });
    });
    await withFileLock(lock, { waitMs: 20 }, nothing);
  });

  it("is not taken from a process that cannot be seen, nor from something else in its place", async () => {
    const lock = join(await temporaryFolder(), "lock");
    const elsewhere = { host: "elsewhere", pid: 1, boot: "other", pidNamespace: "1", started: "1" };
    await symlink(holderOf(elsewhere, "a"), lock);
    await expect(withFileLock(lock, { waitMs: 20 }, nothing)).rejects.toThrow(
      "process 1 on elsewhere holds it",
    );
    await symlink("something", `${lock}-2`);
    await expect(withFileLock(`${lock}-2`, { waitMs: 20 }, nothing)).rejects.toThrow(
      "an unknown process holds it",
    );
  });

  it("is taken from before the last boot of this machine", async () => {
    const lock = join(await temporaryFolder(), "lock");
    await symlink(holderOf({ ...currentProcess(), boot: "an-earlier-one" }, "a"), lock);
    expect(await withFileLock(lock, { waitMs: 20 }, async () => "held")).toBe("held");
  });
});

async function nothing(): Promise<void> {}
