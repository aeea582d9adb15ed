// What the folder store does when processes die, the disk is full, or nothing may be written.
import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished, type TestContext } from "vitest";
import { startProgram } from "../../test/store/program.ts";
import { isWhole } from "../../test/store/self-describing.ts";
import { temporaryFolder } from "../../test/store/temporary-store.ts";
import { openFileStore } from "./file-store.ts";
import type { ObjectStore } from "./object-store.ts";

const NEW = { ifNoneMatch: "*" } as const;
const isRoot = process.getuid?.() === 0;

describe("processes side by side", () => {
  it("lose no increment of a counter that they move by compare-and-swap", async () => {
    const folder = await temporaryFolder();
    const store = await openFileStore(folder);
    await store.put("counter", "0", NEW);
    const programs = Array.from({ length: 4 }, () => startProgram("increment.ts", [folder, "counter", "30"]));
    for (const program of programs) expect(await program.ended).toMatchObject({ exitCode: 0 });
    const values = programs.flatMap(({ lines }) => lines.map(Number)).sort((a, b) => a - b);
    expect(values).toEqual(Array.from({ length: 120 }, (_, index) => index + 1));
    expect(Buffer.from((await store.get("counter"))?.body ?? []).toString()).toBe("120");
  });

  it("go on from a whole counter when some of them are killed", async () => {
    const folder = await temporaryFolder();
    const store = await openFileStore(folder);
    await store.put("counter", "0", NEW);
    const doomed = Array.from({ length: 3 }, () =>
      startProgram("increment.ts", [folder, "counter", "1000000"]),
    );
    for (const program of doomed) {
      await program.nextLine();
      await sleep(60);
      program.child.kill("SIGKILL");
      await program.ended;
    }
    const survivor = startProgram("increment.ts", [folder, "counter", "20"]);
    expect(await survivor.ended).toMatchObject({ exitCode: 0 });
    const acknowledged = [...doomed, survivor].flatMap(({ lines }) => lines.map(Number));
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    // A process may die between its swap and its line.
    const final = Number(Buffer.from((await store.get("counter"))?.body ?? []).toString());
    expect(final).toBe(Math.max(...acknowledged));
    expect(final - acknowledged.length).toBeGreaterThanOrEqual(0);
    expect(final - acknowledged.length).toBeLessThanOrEqual(doomed.length);
  });
});

describe("a process killed in the midst of many puts", () => {
  it("leaves whole objects only, all that it reported, and nothing that the next open does not clean", async () => {
    const folder = await temporaryFolder();
    const unfinished = join(folder, ".t1-store/unfinished");
    let leftoverCount = 0;
    const reported: string[] = [];
    for (const round of [1, 2, 3]) {
      const program = startProgram("put-many.ts", [folder, `round-${round}/`, "16"]);
      await program.nextLine();
      await sleep(50 * round);
      program.child.kill("SIGKILL");
      expect(await program.ended).toMatchObject({ signal: "SIGKILL" });
      reported.push(...program.lines);
      leftoverCount += await fileCount(unfinished);
    }
    expect(leftoverCount).toBeGreaterThan(0);
    const store = await openFileStore(folder);
    expect(await fileCount(unfinished)).toBe(0);
    const found = new Set<string>();
    for await (const { key, sizeBytes } of store.list("")) {
      const object = await store.get(key);
      expect(object?.sizeBytes).toBe(sizeBytes);
      expect(isWhole(object?.body ?? new Uint8Array()), key).toBe(true);
      found.add(key);
    }
    expect(reported.filter(key => !found.has(key))).toEqual([]);
    expect(reported.length).toBeGreaterThan(30);
  });

  it("keeps what living processes are writing", async () => {
    const folder = await temporaryFolder();
    const program = startProgram("put-many.ts", [folder, "", "16"]);
    await program.nextLine();
    for (let opens = 0; opens < 20; opens++) await openFileStore(folder);
    const reportedBefore = program.lines.length;
    while (program.lines.length < reportedBefore + 50) await program.nextLine();
    program.child.kill("SIGKILL");
    // Had an open removed a file that was being written, its put would have failed and ended the program.
    expect(await program.ended).toMatchObject({ signal: "SIGKILL" });
  });
});

describe("storage that refuses", () => {
  it("fails a put on a full disk, keeps what was there, and goes on when there is space again", async context => {
    const folder = await mountTmpfs(context, "size=512k");
    const store = await openFileStore(folder);
    const written: string[] = [];
    const failure = await fill(store, written);
    expect(failure).toMatchObject({ name: "StoreUnavailable", retryable: false, layer: "store" });
    expect(String(failure)).toContain(`cannot put: ${folder}/full/${written.length}: no space left (ENOSPC)`);
    expect((await Array.fromAsync(store.list(""))).map(({ key }) => key)).toEqual([...written].sort());
    expect(await fileCount(join(folder, ".t1-store"))).toBe(0);
    for (const key of written.slice(0, 10)) await store.delete(key);
    expect(await store.put("again", "x".repeat(2_000), NEW)).toMatchObject({ written: true });
  });

  it("reads a file system that became read-only, fails to write to it, and refuses to open it", async context => {
    const folder = await mountTmpfs(context, "size=512k");
    const store = await openFileStore(folder);
    const first = await store.put("a", "1", NEW);
    asRoot(`mount -o remount,ro ${folder}`);
    const refusal = {
      name: "StoreUnavailable",
      retryable: false,
      message: expect.stringContaining("(EROFS)"),
    };
    await expect(store.put("b", "1", NEW)).rejects.toMatchObject(refusal);
    await expect(store.put("a", "2", { ifMatch: first.written ? first.etag : "" })).rejects.toMatchObject(
      refusal,
    );
    await expect(store.delete("a")).rejects.toMatchObject(refusal);
    expect(await store.head("a")).toEqual({ key: "a", sizeBytes: 1 });
    await expect(openFileStore(folder)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining(`store cannot be written: ${folder}`),
    });
  });

  it("names the missing permission: at open as input, later as failure", async context => {
    if (isRoot) context.skip("root ignores file modes");
    const folder = await temporaryFolder();
    const store = await openFileStore(folder);
    await mkdir(join(folder, "a"));
    await writeFile(join(folder, "a", "secret"), "1", { mode: 0 });
    await expect(store.get("a/secret")).rejects.toMatchObject({
      name: "StoreUnavailable",
      message: expect.stringContaining("permission denied (EACCES)"),
    });
    await chmod(join(folder, ".t1-store/unfinished"), 0o500);
    onTestFinished(() => chmod(join(folder, ".t1-store/unfinished"), 0o700));
    await chmod(folder, 0o500);
    onTestFinished(() => chmod(folder, 0o700));
    await expect(store.put("b", "1", NEW)).rejects.toMatchObject({
      name: "StoreUnavailable",
      retryable: false,
    });
    await expect(openFileStore(folder)).rejects.toMatchObject({ name: "InputError" });
    await expect(openFileStore(join(folder, "new"))).rejects.toMatchObject({ name: "InputError" });
  });

  it("calls too many open files a failure that may pass", async () => {
    const folder = await temporaryFolder();
    const program = startProgram("put-burst.ts", [folder, "200"], { shell: "ulimit -n 50" });
    expect(await program.ended).toMatchObject({ exitCode: 0 });
    const { counts, message } = JSON.parse(program.lines[0] ?? "");
    expect(Object.keys(counts).sort()).toEqual(["StoreUnavailable", "written"]);
    expect(message).toContain("too many open files of this process (EMFILE)");
    const store = await openFileStore(folder);
    expect(await Array.fromAsync(store.list(""))).toHaveLength(counts.written);
  });
});

/** Puts objects into `full/` until one fails. @returns what it failed with */
async function fill(store: ObjectStore, written: string[]): Promise<unknown> {
  for (let number = 0; number < 1_000; number++) {
    try {
      await store.put(`full/${number}`, "x".repeat(2_000), NEW);
    } catch (error) {
      return error;
    }
    written.push(`full/${number}`);
  }
  return undefined;
}

async function mountTmpfs(context: TestContext, options: string): Promise<string> {
  if (!isRoot) context.skip("only root can mount a file system to fill or to make read-only");
  const folder = await temporaryFolder();
  try {
    asRoot(`mount -t tmpfs -o ${options} t1-store-test ${folder}`);
  } catch (error) {
    context.skip(`this container may not mount: ${String(error)}`);
  }
  onTestFinished(() => asRoot(`umount ${folder}`));
  return folder;
}

async function fileCount(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter(entry => !entry.isDirectory()).length;
}

function asRoot(command: string): void {
  execFileSync("sh", ["-c", command], { stdio: "pipe" });
}
