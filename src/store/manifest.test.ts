import { describe, expect, it } from "vitest";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { stormyStore } from "../../test/storm/stormy-store.ts";
import { sha256 } from "../files/sha256.ts";
import { policyPrefix } from "../run/keys.ts";
import { deleteFolder, openFolder, type StoredFolder, writeFolder } from "./manifest.ts";
import type { ObjectStore } from "./object-store.ts";

const NEW = { ifNoneMatch: "*" } as const;
const prefix = policyPrefix("demo", 1);
const files = [
  { path: "model.safetensors", body: new Uint8Array(100_000).fill(7) },
  { path: "config.json", body: "{}\n" },
  { path: "extra/notes.md", body: "" },
];
const hashOfConfig = sha256(Buffer.from("{}\n"));

async function replaceObject(store: ObjectStore, key: string, body: string): Promise<void> {
  await store.delete(key);
  await store.put(key, body, NEW);
}

async function reopen(store: ObjectStore): Promise<StoredFolder> {
  const folder = await openFolder(store, prefix);
  if (folder === undefined) throw new Error("the folder does not count");
  return folder;
}

describe("folder with a manifest", () => {
  it("is read as it was written, file by file", async () => {
    const store = await temporaryStore();
    await writeFolder(store, prefix, files);
    const folder = await reopen(store);
    expect(folder.names).toEqual(["config.json", "extra/notes.md", "model.safetensors"]);
    for (const { path, body } of files) expect(await folder.read(path)).toEqual(Buffer.from(body));
    expect(
      JSON.parse(Buffer.from((await store.get(`${prefix}manifest.json`))?.body ?? []).toString()),
    ).toEqual({
      files: [
        { path: "config.json", sizeBytes: 3, sha256: hashOfConfig },
        { path: "extra/notes.md", sizeBytes: 0, sha256: sha256(new Uint8Array()) },
        { path: "model.safetensors", sizeBytes: 100_000, sha256: sha256(new Uint8Array(100_000).fill(7)) },
      ],
    });
    await folder.verify();
  });

  it("does not count before its last file is written", async () => {
    const store = await temporaryStore();
    const dying = (async function* () {
      yield* files.slice(0, 2);
      expect(await openFolder(store, prefix)).toBeUndefined();
      throw new Error("killed");
    })();
    await expect(writeFolder(store, prefix, dying)).rejects.toThrow("killed");
    expect(await store.head(`${prefix}config.json`)).toBeDefined();
    expect(await openFolder(store, prefix)).toBeUndefined();
  });

  it("replaces what a dead writer left, also other bytes", async () => {
    const store = await temporaryStore();
    await store.put(`${prefix}config.json`, "other bytes", NEW);
    await store.put(`${prefix}model.safetensors`, files[0]?.body ?? "", NEW);
    await (await writeFolder(store, prefix, files)).verify();
    expect(await (await reopen(store)).read("config.json")).toEqual(Buffer.from("{}\n"));
  });

  it("is kept once it counts: other content is not even made", async () => {
    const store = await temporaryStore();
    await writeFolder(store, prefix, files);
    let wasAsked = false;
    const others = (function* () {
      wasAsked = true;
      yield { path: "model.safetensors", body: "other last bits" };
    })();
    const kept = await writeFolder(store, prefix, others);
    expect([wasAsked, kept.names.length]).toEqual([false, 3]);
    await kept.verify();
  });

  it("refuses to be empty, to hold a file twice, or a file in its manifest's place", async () => {
    const store = await temporaryStore();
    const twice = [...files, { path: "config.json", body: "" }];
    for (const wrong of [[], twice, [{ path: "manifest.json", body: "" }]])
      await expect(writeFolder(store, prefix, wrong)).rejects.toMatchObject({ name: "InvariantError" });
    expect(await openFolder(store, prefix)).toBeUndefined();
  });

  it("names a file that was changed, with expected and got hash", async () => {
    const store = await temporaryStore();
    const folder = await writeFolder(store, prefix, files);
    await replaceObject(store, `${prefix}config.json`, "[]\n");
    const message = `corrupt checkpoint: ${prefix}config.json: expected 3 bytes with SHA-256 ${hashOfConfig}, got 3 bytes with SHA-256 ${sha256(Buffer.from("[]\n"))}`;
    await expect(folder.verify()).rejects.toThrow(message);
    await expect(folder.read("config.json")).rejects.toThrow(message);
    await folder.read("model.safetensors");
  });

  it("names a file that is cut off or missing", async () => {
    const store = await temporaryStore();
    const folder = await writeFolder(store, prefix, files);
    await replaceObject(store, `${prefix}config.json`, "{");
    await expect(folder.verify()).rejects.toThrow(/config\.json: .* got 1 bytes/);
    await store.delete(`${prefix}config.json`);
    for (const reading of [folder.verify(), folder.read("config.json")])
      await expect(reading).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringMatching(/config\.json: .* got no such object\n {2}fix: restore the folder/),
      });
    await expect(folder.read("tokenizer.json")).rejects.toThrow(
      /missing file: .*tokenizer\.json: .*lists config\.json, extra/,
    );
  });

  it("does not count while it is being deleted", async () => {
    const store = await temporaryStore();
    await writeFolder(store, prefix, files);
    let deleted = 0;
    const dying = stormyStore(store, () => deleted++ === 2);
    await expect(deleteFolder(dying, prefix)).rejects.toThrow("planned");
    expect(await store.head(`${prefix}config.json`)).toBeDefined();
    expect(await openFolder(store, prefix)).toBeUndefined();
    await deleteFolder(store, prefix);
    expect(await Array.fromAsync(store.list(prefix))).toEqual([]);
  });

  it("does not pass over a corrupt manifest", async () => {
    const store = await temporaryStore();
    for (const text of [
      '{"files": [',
      '{"files": []}\n',
      '{"files":[{"path":"a","sizeBytes":1,"sha256":"x"}]}',
    ]) {
      await replaceObject(store, `${prefix}manifest.json`, text);
      await expect(openFolder(store, prefix)).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringContaining(`object: ${prefix}manifest.json: `),
      });
    }
  });
});
