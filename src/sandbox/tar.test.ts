import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pack } from "tar-stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import { InputError } from "../failure/errors.ts";
import { packFiles, packFolder, readTarFiles } from "./tar.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "t1-tar-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function textOf(files: ReadonlyMap<string, Uint8Array>): Record<string, string> {
  return Object.fromEntries([...files].map(([name, bytes]) => [name, Buffer.from(bytes).toString()]));
}

test("what is packed is read again byte for byte, long and foreign names included", async () => {
  const deep = "d".repeat(80);
  mkdirSync(join(folder, deep, deep), { recursive: true });
  writeFileSync(join(folder, deep, deep, "naïve.txt"), Buffer.from([0, 255, 10]));
  writeFileSync(join(folder, "empty"), "");
  const files = await readTarFiles(await packFolder(folder));
  expect([...files.keys()].sort()).toEqual([`${deep}/${deep}/naïve.txt`, "empty"].sort());
  expect(files.get(`${deep}/${deep}/naïve.txt`)).toEqual(Uint8Array.of(0, 255, 10));
});

test("tar itself unpacks it with modes, times and links as they were", async () => {
  writeFileSync(join(folder, "run.sh"), "#!/bin/sh\n");
  chmodSync(join(folder, "run.sh"), 0o755);
  symlinkSync("/etc/passwd", join(folder, "link"));
  const out = mkdtempSync(join(tmpdir(), "t1-tar-"));
  execFileSync("tar", ["-x", "-f", "-", "-C", out], { input: await packFolder(folder) });
  expect(statSync(join(out, "run.sh")).mode & 0o777).toBe(0o755);
  expect(statSync(join(out, "run.sh")).mtime.getTime()).toBe(
    Math.floor(statSync(join(folder, "run.sh")).mtimeMs / 1000) * 1000,
  );
  expect(readlinkSync(join(out, "link"))).toBe("/etc/passwd");
  rmSync(out, { recursive: true });
});

test("files of this machine are packed under their place inside", async () => {
  writeFileSync(join(folder, "a.csv"), "1\n");
  mkdirSync(join(folder, "sub"));
  writeFileSync(join(folder, "sub", "b"), "2\n");
  const tar = await packFiles([
    { from: join(folder, "a.csv"), to: "/app/data.csv" },
    { from: join(folder, "sub"), to: "/srv/x/" },
  ]);
  expect(textOf(await readTarFiles(tar))).toEqual({ "app/data.csv": "1\n", "srv/x/b": "2\n" });
});

test("a link, a missing file and a file for / are refused as setup files", async () => {
  symlinkSync("/etc/passwd", join(folder, "link"));
  writeFileSync(join(folder, "f"), "");
  for (const [from, to] of [
    ["link", "/x"],
    ["missing", "/x"],
    ["f", "/"],
  ] as const)
    await expect(packFiles([{ from: join(folder, from), to }])).rejects.toThrow(InputError);
});

test("a pipe cannot be packed", async () => {
  execFileSync("mkfifo", [join(folder, "p")]);
  await expect(packFolder(folder)).rejects.toThrow(/neither file, folder nor symbolic link: .*\/p/);
});

test("names that lead out, links and devices of an untrusted archive are left out", async () => {
  const archive = pack();
  for (const name of ["../out", "/etc/passwd", "a/../../b", "a//b", "./ok"]) archive.entry({ name }, "x");
  archive.entry({ name: "soft", type: "symlink", linkname: "/etc/passwd" });
  archive.entry({ name: "hard", type: "link", linkname: "/etc/passwd" });
  archive.entry({ name: "null", type: "character-device" });
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
  expect(textOf(await readTarFiles(Buffer.concat(chunks)))).toEqual({ ok: "x" });
});

test("an archive that breaks off gives the files before the break", async () => {
  writeFileSync(join(folder, "a"), "first");
  writeFileSync(join(folder, "b"), "second");
  const tar = await packFolder(folder);
  expect(textOf(await readTarFiles(tar.subarray(0, 512 + 512 + 512 + 3)))).toEqual({ a: "first" });
  const broken = Buffer.from(tar);
  broken.fill(0x41, 1024, 1536);
  expect(textOf(await readTarFiles(broken))).toEqual({ a: "first" });
  expect(textOf(await readTarFiles(Buffer.from("no tar at all")))).toEqual({});
});
