// What a clean sandbox takes of an archive whose packer may be the agent's. That honest archives are taken is part of the
// contract of sandboxes.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Header, pack } from "tar-stream";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Unpacking } from "./unpack.ts";

type Entry = Pick<Header, "name"> & Partial<Header>;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "t1-unpack-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, "tests"));
  writeFileSync(join(root, "tests/test.sh"), "honest");
});

/** @param only names below the root */
async function unpack(entries: readonly Entry[], only: readonly string[]): Promise<void> {
  const archive = pack();
  for (const entry of entries) archive.entry(entry, entry.type === undefined ? "agent's" : "");
  archive.finalize();
  const pieces: Buffer[] = [];
  for await (const piece of archive as AsyncIterable<Buffer>) pieces.push(piece);
  const unpacking = new Unpacking(root, { keepOwners: false, only: only.map(name => join(root, name)) });
  await unpacking.write(Buffer.concat(pieces));
  await unpacking.end();
}

test("what was asked for", async () => {
  const link = { name: "app/link", type: "symlink", linkname: "/tests" } as const;
  const twin = { name: "app/twin", type: "link", linkname: "app/file" } as const;
  const entries = [{ name: "app/", type: "directory" }, { name: "app/file" }, link, twin] as const;
  await unpack(entries, ["app", "app/file", "app/link", "app/twin"]);
  expect(readFileSync(join(root, "app/twin"), "utf8")).toBe("agent's");
});

test.each<[string, readonly Entry[], readonly string[]]>([
  ["a file that was not asked for", [{ name: "tests/test.sh" }], ["app"]],
  ["the same by a way around", [{ name: "app/../../tests/test.sh" }], ["tests/test.sh"]],
  [
    "a file through a link of its own",
    [{ name: "app/link", type: "symlink", linkname: "../tests" }, { name: "app/link/test.sh" }],
    ["app/link", "app/link/test.sh"],
  ],
  [
    "the mode of a folder behind a link of its own",
    [
      { name: "app/link", type: "symlink", linkname: "../tests" },
      { name: "app/link/", type: "directory", mode: 0o777 },
    ],
    ["app/link"],
  ],
  [
    "a second name of a file behind a link of its own",
    [
      { name: "app/link", type: "symlink", linkname: "../tests" },
      { name: "app/file", type: "link", linkname: "app/link/test.sh" },
    ],
    ["app/link", "app/link/test.sh", "app/file"],
  ],
  [
    "the mode of a file behind a second name of a link of its own",
    [
      { name: "app/link", type: "symlink", linkname: "../tests/test.sh" },
      { name: "app/twin", type: "link", linkname: "app/link", mode: 0o777 },
    ],
    ["app/link", "app/twin"],
  ],
  [
    "a second name of a file that was not asked for",
    [{ name: "app/file", type: "link", linkname: "tests/test.sh" }],
    ["app/file"],
  ],
  [
    "another name by a record of ours",
    [{ name: "app/file", pax: { "T1.name": '"tests/test.sh"' } }],
    ["app/file"],
  ],
  ["a name that is none", [{ name: "app/file", pax: { "T1.name": "{" } }], ["app/file"]],
])("never %s", async (_, entries, only) => {
  const modes = () => ["tests", "tests/test.sh"].map(name => statSync(join(root, name)).mode);
  const before = modes();
  await expect(unpack(entries, only)).rejects.toThrow("the archive");
  expect(readFileSync(join(root, "tests/test.sh"), "utf8")).toBe("honest");
  expect(modes()).toEqual(before);
  expect(existsSync(join(root, "app/file"))).toBe(false);
});
