import { chmodSync, cpSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FolderFiles, makeFolder } from "../../test/task/folder.ts";
import { hashFolder } from "./hash.ts";

const name = fc.string({ unit: fc.constantFrom(..."abz.é -\n"), minLength: 1, maxLength: 3 });
const path = fc
  .array(name, { minLength: 1, maxLength: 3 })
  .map(names => names.join("/"))
  .filter(joined => joined.split("/").every(part => part !== "." && part !== ".."));
const folder = fc
  .dictionary(path, fc.uint8Array({ maxLength: 4 }), { minKeys: 1, maxKeys: 6 })
  // No path may lead through a file.
  .filter(files =>
    Object.keys(files).every(one => !Object.keys(files).some(other => other.startsWith(`${one}/`))),
  );

/** Writing and hashing files takes milliseconds, not microseconds. */
const runs = { numRuns: 60 };

describe("hashFolder", () => {
  it("does not depend on the order in which files were written, where they lie, or when", async () => {
    await fc.assert(
      fc.asyncProperty(folder, async files => {
        const one = makeFolder(files, "one");
        const two = makeFolder(Object.fromEntries(Object.entries(files).reverse()), "two");
        for (const file of Object.keys(files)) utimesSync(join(two, file), 1, 1);
        expect(await hashFolder(two)).toBe(await hashFolder(one));
      }),
      runs,
    );
  });

  it("changes with any byte, name or executable bit of any file", async () => {
    const change = fc.constantFrom("byte", "length", "name", "mode", "link", "gone");
    await fc.assert(
      fc.asyncProperty(folder, fc.nat(), change, async (files, choice, kind) => {
        const before = makeFolder(files, "before");
        const after = join(makeFolder({}, "copy"), "after");
        cpSync(before, after, { recursive: true });
        const paths = Object.keys(files);
        const chosen = paths[choice % paths.length] ?? "";
        const bytes = files[chosen] ?? new Uint8Array();
        const file = join(after, chosen);
        if (kind === "byte" && bytes.length > 0) writeFileSync(file, bytes.with(0, (bytes[0] ?? 0) ^ 1));
        else if (kind === "mode") chmodSync(file, 0o755);
        else if (kind === "name") renameSync(file, `${file}x`);
        else if (kind === "gone") renameSync(file, join(after, "..", "elsewhere"));
        else if (kind === "link") {
          const others = Object.fromEntries(Object.entries(files).filter(([path]) => path !== chosen));
          const linked = makeFolder({
            ...others,
            [chosen]: { link: Buffer.from(bytes).toString("hex") || "." },
          });
          expect(await hashFolder(linked)).not.toBe(await hashFolder(before));
          return;
        } else writeFileSync(file, Buffer.concat([bytes, Uint8Array.of(0)]));
        expect(await hashFolder(after)).not.toBe(await hashFolder(before));
      }),
      runs,
    );
  });

  it("tells contents apart that read the same when run together", async () => {
    const folders: readonly FolderFiles[] = [
      { a: "bc" },
      { ab: "c" },
      { a: "b", c: "" },
      { a: { link: "bc" } },
      { "a/b": "c" },
      { a: { link: "b/c" } },
      {},
    ];
    const hashes = await Promise.all(folders.map(files => hashFolder(makeFolder(files))));
    expect(new Set(hashes).size).toBe(folders.length);
  });

  it("covers a link's target as written, not what lies there", async () => {
    const one = makeFolder({ link: { link: "file" }, file: "" });
    const two = makeFolder({ link: { link: "./file" }, file: "" });
    expect(await hashFolder(one)).not.toBe(await hashFolder(two));
  });

  it("does not count empty folders, which neither git nor the store keeps", async () => {
    const full = makeFolder({ "inner/file": "" });
    renameSync(join(full, "inner", "file"), join(full, "file"));
    expect(await hashFolder(full)).toBe(await hashFolder(makeFolder({ file: "" })));
  });
});
