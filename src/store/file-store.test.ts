import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { objectStoreContract } from "../../test/contracts/object-store.ts";
import { InputError } from "../failure/errors.ts";
import { openFileStore } from "./file-store.ts";

const NEW = { ifNoneMatch: "*" } as const;
let root: string;
beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "t1-file-store-")));
});
afterAll(() => rm(root, { recursive: true }));

async function freshFolder(): Promise<string> {
  return mkdtemp(join(root, "store-"));
}

describe("file store", () => {
  objectStoreContract(
    async () => {
      const folder = await freshFolder();
      return { store: await openFileStore(folder), again: () => openFileStore(folder) };
    },
    {
      except: [
        {
          rule: "an object may lie at a key and others below it",
          reason: "objects are files of their own names, so that people and programs can read them",
        },
      ],
    },
  );

  it("says which object or folder is in the way of a key", async () => {
    const store = await openFileStore(await freshFolder());
    await store.put("a/b", "1", NEW);
    await expect(store.put("a/b/c/d", "1", NEW)).rejects.toThrow(/an object is in the way: .*a\/b: /);
    await expect(store.put("a", "1", NEW)).rejects.toThrow(/a folder is in the way: .*a: /);
  });

  it("keeps objects as files of their names, and nothing else beside its own folder", async () => {
    const folder = await freshFolder();
    const store = await openFileStore(folder);
    await store.put("runs/x/state.json", "{}\n", NEW);
    const names = await readdir(folder, { recursive: true });
    expect(names.filter(name => !name.startsWith(".t1-store")).sort()).toEqual([
      "runs",
      "runs/x",
      "runs/x/state.json",
    ]);
    expect(
      (await readdir(join(folder, ".t1-store"), { recursive: true, withFileTypes: true })).filter(
        e => !e.isDirectory(),
      ),
    ).toEqual([]);
  });

  it("makes the folder that it opens, also below folders that are missing", async () => {
    const folder = join(await freshFolder(), "a/b c");
    const store = await openFileStore(folder);
    expect(store.url).toBe(`file://${folder.replace(" ", "%20")}`);
    await store.put("x", "1", NEW);
    expect(await readdir(folder)).toContain("x");
  });

  it("refuses to open a file, and a folder below one", async () => {
    const file = join(await freshFolder(), "file");
    await writeFile(file, "");
    await expect(openFileStore(file)).rejects.toThrow(/store is no folder: .*file/);
    await expect(openFileStore(join(file, "below"))).rejects.toThrow(InputError);
  });

  it("is made by nobody who only wants to read or change it, and read without a file of ours", async () => {
    const folder = await freshFolder();
    const missing = join(folder, "missing");
    for (const use of ["read", "change"] as const)
      await expect(openFileStore(missing, use)).rejects.toThrow(/^no such store: .*missing/);
    await mkdir(join(folder, "runs"));
    await writeFile(join(folder, "runs/a"), "1");
    const store = await openFileStore(folder, "read");
    expect(await store.head("runs/a")).toEqual({ key: "runs/a", sizeBytes: 1 });
    expect(await readdir(folder)).toEqual(["runs"]);
  });

  it("follows no link out of its folder, be it to a folder or to a file", async () => {
    const outside = await freshFolder();
    await writeFile(join(outside, "secret"), "secret");
    const folder = await freshFolder();
    const store = await openFileStore(folder);
    await mkdir(join(folder, "a"));
    await symlink(outside, join(folder, "a", "out"));
    await symlink(join(outside, "secret"), join(folder, "a", "file"));
    await symlink(join(outside, "nothing"), join(folder, "a", "dangling"));
    for (const key of ["a/out/secret", "a/out", "a/file", "a/dangling"]) {
      await expect(store.get(key), key).rejects.toThrow("not an object of the store");
      await expect(store.head(key), key).rejects.toThrow("not an object of the store");
      await expect(store.delete(key), key).rejects.toThrow("not an object of the store");
      await expect(store.put(key, "1", NEW), key).rejects.toThrow("not an object of the store");
      await expect(store.put(key, "1", { ifMatch: "x" }), key).rejects.toThrow("not an object of the store");
    }
    for (const key of ["a/out/new", "a/out/new/new", "a/dangling/new"])
      await expect(store.put(key, "1", NEW), key).rejects.toThrow("not an object of the store");
    for (const prefix of ["", "a/", "a/out/", "a/out/s"])
      await expect(Array.fromAsync(store.list(prefix)), prefix).rejects.toThrow("not an object of the store");
    expect(await readdir(outside)).toEqual(["secret"]);
  });

  it("opens through a link to its folder: only links inside lead out", async () => {
    const folder = await freshFolder();
    await symlink(folder, `${folder}-link`);
    const store = await openFileStore(`${folder}-link`);
    await store.put("a/b", "1", NEW);
    expect(await (await openFileStore(folder)).head("a/b")).toEqual({ key: "a/b", sizeBytes: 1 });
  });

  it("goes on when somebody deletes its folders", async () => {
    const folder = await freshFolder();
    const store = await openFileStore(folder);
    await store.put("a/b/c", "1", NEW);
    await rm(join(folder, "a"), { recursive: true });
    expect(await store.get("a/b/c")).toBeUndefined();
    expect(await store.put("a/b/c", "2", NEW)).toMatchObject({ written: true });
    await rm(join(folder, ".t1-store"), { recursive: true });
    const written = await store.put("a/b/d", "1", NEW);
    await rm(join(folder, ".t1-store"), { recursive: true });
    expect(await store.put("a/b/d", "2", { ifMatch: written.written ? written.etag : "" })).toMatchObject({
      written: true,
    });
    await rm(join(folder, ".t1-store"), { recursive: true });
    await store.delete("a/b/d");
    expect((await Array.fromAsync(store.list(""))).map(({ key }) => key)).toEqual(["a/b/c"]);
  });

  it("loses no put to another handle that deletes and prunes the same folder", async () => {
    const folder = await freshFolder();
    const [writer, deleter] = [await openFileStore(folder), await openFileStore(folder)];
    for (let round = 0; round < 30; round++) {
      await writer.put("a/b/old", "1", NEW);
      const [put] = await Promise.all([writer.put(`a/b/new-${round}`, "1", NEW), deleter.delete("a/b/old")]);
      expect(put.written).toBe(true);
      await deleter.delete(`a/b/new-${round}`);
    }
    expect(await Array.fromAsync(writer.list(""))).toEqual([]);
  });

  it("does not write to the place where its disk was mounted", async () => {
    const folder = await freshFolder();
    const store = await openFileStore(folder);
    await rm(folder, { recursive: true });
    await expect(store.put("a", "1", NEW)).rejects.toMatchObject({
      name: "StoreUnavailable",
      message: expect.stringContaining("the folder vanished"),
    });
    await expect(readdir(folder)).rejects.toThrow("ENOENT");
  });
});
