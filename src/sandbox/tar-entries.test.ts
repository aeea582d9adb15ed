import { execFileSync } from "node:child_process";
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { joinTarEntries, readTarEntries } from "./tar-entries.ts";

describe("entries of a tar archive", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "t1-entries-"));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("are what GNU tar packed: times with fractions, long names, links, holes", () => {
    const long = "n".repeat(180);
    mkdirSync(join(folder, "a", long), { recursive: true });
    writeFileSync(join(folder, "a", long, "é.txt"), "hello");
    chmodSync(join(folder, "a", long, "é.txt"), 0o4751);
    utimesSync(join(folder, "a", long, "é.txt"), 1.25, 981_173_106.5);
    linkSync(join(folder, "a", long, "é.txt"), join(folder, "b"));
    symlinkSync("../x", join(folder, "l"));
    writeFileSync(join(folder, "holes"), "");
    truncateSync(join(folder, "holes"), 1 << 30);
    const tar = execFileSync("tar", ["-c", "--format=posix", "--sparse", "--sort=name", "-C", folder, "."]);
    const entries = new Map(readTarEntries(tar).map(entry => [entry.path, entry]));
    expect([...entries.keys()]).toEqual(["", "a", `a/${long}`, `a/${long}/é.txt`, "b", "holes", "l"]);
    const text = entries.get(`a/${long}/é.txt`);
    expect(text).toMatchObject({ kind: "file", mode: 0o4751, mtime: 981_173_106.5, isSparse: false });
    expect(Buffer.from(text?.content ?? []).toString()).toBe("hello");
    expect(entries.get("b")).toMatchObject({ kind: "hard-link", target: `a/${long}/é.txt` });
    expect(entries.get("l")).toMatchObject({ kind: "link", target: "../x" });
    expect(entries.get("holes")).toMatchObject({ kind: "file", isSparse: true });
    expect(tar.length).toBeLessThan(1 << 20);
  });

  it("make an archive again of those that are kept, and nothing else", () => {
    writeFileSync(join(folder, "kept"), "k".repeat(700));
    writeFileSync(join(folder, "cut"), "c".repeat(700));
    const tar = execFileSync("tar", ["-c", "--format=posix", "-C", folder, "kept", "cut", "l"]);
    const rest = joinTarEntries(readTarEntries(tar).filter(({ path }) => path !== "cut"));
    expect(execFileSync("tar", ["-t"], { input: rest, encoding: "utf8" })).toBe("kept\nl\n");
    expect(execFileSync("tar", ["-x", "-O", "-f", "-", "kept"], { input: rest, encoding: "utf8" })).toBe(
      "k".repeat(700),
    );
  });

  it("are names and contents as tar-stream packed them, whatever they are", async () => {
    const name = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 300 })
      .map(text => text.replaceAll(/[\0/]/g, "_"));
    const file = fc.tuple(name, fc.uint8Array({ maxLength: 1500 }));
    await fc.assert(
      fc.asyncProperty(fc.array(file, { maxLength: 5 }), async files => {
        const archive = pack();
        for (const [index, [path, content]] of files.entries())
          archive.entry({ name: `${index}/x${path}` }, Buffer.from(content));
        archive.finalize();
        const chunks: Buffer[] = [];
        for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
        const entries = readTarEntries(Buffer.concat(chunks));
        expect(entries.map(({ path }) => path)).toEqual(
          files.map(([path], index) => `${index}/x${path}`.toWellFormed()),
        );
        expect(entries.map(({ content }) => [...content])).toEqual(files.map(([, content]) => [...content]));
      }),
      { numRuns: 50 },
    );
  });

  it("are refused when the archive is cut short or none", () => {
    const tar = execFileSync("tar", ["-c", "-C", folder, "kept"]);
    for (const bytes of [tar.subarray(0, 700), Buffer.from("no archive"), Buffer.alloc(0)])
      expect(() => readTarEntries(bytes)).toThrow("not a whole tar archive");
  });
});
