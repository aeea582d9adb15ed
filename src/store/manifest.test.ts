import { describe, expect, it } from "vitest";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { sha256 } from "../files/sha256.ts";
import { policyPrefix } from "../run/keys.ts";
import { readFolderFile, readManifest, verifyFolder, writeFolder } from "./manifest.ts";
import type { ObjectStore } from "./object-store.ts";

const NEW = { ifNoneMatch: "*" } as const;
const folder = policyPrefix("demo", 1);
const files = [
  { path: "model.safetensors", body: new Uint8Array(100_000).fill(7) },
  { path: "config.json", body: "{}\n" },
  { path: "extra/notes.md", body: "" },
];
const hashes = files.map(({ path, body }) => ({
  path,
  sizeBytes: body.length,
  sha256: sha256(Buffer.from(body)),
}));

async function replaceObject(store: ObjectStore, key: string, body: string): Promise<void> {
  await store.delete(key);
  await store.put(key, body, NEW);
}

describe("folder with a manifest", () => {
  it("is read as it was written, file by file", async () => {
    const store = await temporaryStore();
    const manifest = await writeFolder(store, folder, files);
    expect(manifest.files).toEqual([hashes[1], hashes[2], hashes[0]]);
    expect(await readManifest(store, folder)).toEqual(manifest);
    for (const { path, body } of files)
      expect(await readFolderFile(store, folder, manifest, path)).toEqual(Buffer.from(body));
    await verifyFolder(store, folder, manifest);
  });

  it("does not count before its last file is written", async () => {
    const store = await temporaryStore();
    const dying = (async function* () {
      yield* files.slice(0, 2);
      expect(await readManifest(store, folder)).toBeUndefined();
      throw new Error("killed");
    })();
    await expect(writeFolder(store, folder, dying)).rejects.toThrow("killed");
    expect(await store.head(`${folder}config.json`)).toBeDefined();
    expect(await readManifest(store, folder)).toBeUndefined();
  });

  it("replaces what a dead writer left, also other bytes", async () => {
    const store = await temporaryStore();
    await store.put(`${folder}config.json`, "other bytes", NEW);
    await store.put(`${folder}model.safetensors`, files[0]?.body ?? "", NEW);
    await verifyFolder(store, folder, await writeFolder(store, folder, files));
  });

  it("passes when it is written again, and refuses other content once it counts", async () => {
    const store = await temporaryStore();
    const manifest = await writeFolder(store, folder, files);
    expect(await writeFolder(store, folder, [...files].reverse())).toEqual(manifest);
    const others = [
      [...files.slice(1), { path: "model.safetensors", body: "other" }],
      files.slice(1),
      [...files, { path: "more", body: "" }],
    ];
    for (const other of others)
      await expect(writeFolder(store, folder, other)).rejects.toMatchObject({ name: "InvariantError" });
    await verifyFolder(store, folder, manifest);
    expect(await store.head(`${folder}more`)).toBeUndefined();
  });

  it("refuses to be empty, to hold a file twice, or a file in its manifest's place", async () => {
    const store = await temporaryStore();
    const twice = [...files, { path: "config.json", body: "" }];
    for (const wrong of [[], twice, [{ path: "manifest.json", body: "" }]])
      await expect(writeFolder(store, folder, wrong)).rejects.toMatchObject({ name: "InvariantError" });
    expect(await readManifest(store, folder)).toBeUndefined();
  });

  it("names a file that was changed, with expected and got hash", async () => {
    const store = await temporaryStore();
    const manifest = await writeFolder(store, folder, files);
    await replaceObject(store, `${folder}config.json`, "[]\n");
    const message = `corrupt checkpoint: ${folder}config.json: expected 3 bytes with SHA-256 ${hashes[1]?.sha256}, got 3 bytes with SHA-256 ${sha256(Buffer.from("[]\n"))}`;
    await expect(verifyFolder(store, folder, manifest)).rejects.toThrow(message);
    await expect(readFolderFile(store, folder, manifest, "config.json")).rejects.toThrow(message);
    await readFolderFile(store, folder, manifest, "model.safetensors");
  });

  it("names a file that is cut off or missing", async () => {
    const store = await temporaryStore();
    const manifest = await writeFolder(store, folder, files);
    await replaceObject(store, `${folder}config.json`, "{");
    await expect(verifyFolder(store, folder, manifest)).rejects.toThrow(/config\.json: .* got 1 bytes/);
    await store.delete(`${folder}config.json`);
    for (const reading of [
      verifyFolder(store, folder, manifest),
      readFolderFile(store, folder, manifest, "config.json"),
    ])
      await expect(reading).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringMatching(/config\.json: .* got no such object\n {2}fix: restore the folder/),
      });
    await expect(readFolderFile(store, folder, manifest, "tokenizer.json")).rejects.toThrow(
      /missing file: .*tokenizer\.json: .*lists config\.json, extra/,
    );
  });

  it("does not pass over a corrupt manifest", async () => {
    const store = await temporaryStore();
    for (const text of [
      '{"files": [',
      '{"files": []}\n',
      '{"files":[{"path":"a","sizeBytes":1,"sha256":"x"}]}',
    ]) {
      await replaceObject(store, `${folder}manifest.json`, text);
      await expect(readManifest(store, folder)).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringContaining(`object: ${folder}manifest.json: `),
      });
    }
  });
});
