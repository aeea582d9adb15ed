import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isHostDockerfile, readHostDockerfile } from "./host-dockerfile.ts";

let context: string;
beforeEach(() => {
  context = mkdtempSync(join(tmpdir(), "t1-dockerfile-"));
  mkdirSync(join(context, "files", "sub"), { recursive: true });
  for (const name of ["a.txt", "b.txt", "with space", "files/c", "files/sub/d"])
    writeFileSync(join(context, name), name);
});
afterEach(() => rmSync(context, { recursive: true, force: true }));

function read(text: string) {
  const file = join(context, "Dockerfile");
  writeFileSync(file, text);
  return readHostDockerfile(file, context);
}

/** Copies as "from → to", with from below the context. */
function copies(text: string): readonly string[] {
  return read(text).files.map(({ from, to }) => `${from.slice(context.length + 1)} → ${to}`);
}

test("the image only stands for this machine, and without WORKDIR work happens in /", () => {
  expect(read("FROM ubuntu:24.04\n")).toEqual({ workdir: "/", files: [], env: {} });
});

test("says by the name of its only stage that it needs no image", () => {
  const file = join(context, "Dockerfile");
  for (const [text, expected] of [
    ["FROM ubuntu:24.04 AS t1-host\nRUN x", true],
    ["from x as t1-host", true],
    ["FROM ubuntu:24.04\nWORKDIR /app", false],
    ["FROM t1-host", false],
    ["FROM x AS t1-host\nFROM y", false],
    ["", false],
  ] as const) {
    writeFileSync(file, text);
    expect([text, isHostDockerfile(file)]).toEqual([text, expected]);
  }
});

test("WORKDIR follows WORKDIR, relative to it", () => {
  expect(read("FROM x\nWORKDIR /app/\nworkdir src\n").workdir).toBe("/app/src");
});

// Each as `docker build` of Docker 20.10 does it: what is copied, and where it lands.
test.each([
  ["a file under a new name", "COPY a.txt data.csv", ["a.txt → /app/data.csv"]],
  ["a file into a folder", "COPY a.txt in/", ["a.txt → /app/in/a.txt"]],
  ["a file into the working directory", "COPY a.txt .", ["a.txt → /app/a.txt"]],
  ["a file to an absolute place", "COPY a.txt /srv/x", ["a.txt → /srv/x"]],
  ["a file onto a folder that exists", "COPY a.txt /app", ["a.txt → /app/a.txt"]],
  [
    "a file onto a folder that an earlier copy made",
    "COPY a.txt q/\nCOPY b.txt q",
    ["a.txt → /app/q/a.txt", "b.txt → /app/q/b.txt"],
  ],
  ["what a folder holds, not the folder", "COPY files dest", ["files → /app/dest"]],
  ["a folder with a slash", "COPY files/ /app/", ["files → /app"]],
  ["the whole context", "COPY . .", [" → /app"]],
  ["a source from the root of the context", "COPY /files/c c", ["files/c → /app/c"]],
  ["several files", "COPY a.txt b.txt ./in/", ["a.txt → /app/in/a.txt", "b.txt → /app/in/b.txt"]],
  ["JSON, for names with spaces", 'COPY ["with space", "to here"]', ["with space → /app/to here"]],
  ["quotes", 'COPY "a.txt" x', ["a.txt → /app/x"]],
])("copies %s", (_, line, expected) => {
  expect(copies(`FROM x\nWORKDIR /app\n${line}\n`)).toEqual(expected);
});

test("comments, empty lines and continued lines are read as Docker reads them", () => {
  expect(
    copies("# first\nFROM x\n\nCOPY \\\n  # between\n\n  a.txt \\ \n  /y\r\n  # COPY b.txt /z\n"),
  ).toEqual(["a.txt → /y"]);
});

test("variables are kept with quotes and escapes resolved", () => {
  expect(read(`FROM x\nENV A=1 B="two words" C=three\\ words D='$HOME'\nENV A=2\n`).env).toEqual({
    A: "2",
    B: "two words",
    C: "three words",
    D: "$HOME",
  });
});

test.each([
  ["RUN apt-get update", "RUN needs an image", 3],
  ['CMD ["sh"]', "CMD needs an image", 3],
  ["USER nobody", "USER needs an image", 3],
  ["ARG X=1", "ARG needs an image", 3],
  ["FROM y", "a second FROM needs an image", 3],
  ["COPY --from=build /x /y", "COPY --from needs an image", 3],
  ["COPY --chown=1:1 a.txt /y", "COPY --chown needs an image", 3],
  ["COPY *.txt /y/", "COPY with a pattern (*.txt) needs an image", 3],
  ["COPY link /y", "COPY of a symbolic link (link) needs an image", 3],
  ["COPY ../secret /y", "COPY from outside the context (../secret)", 3],
  ["COPY missing /y", "COPY of a missing file (missing)", 3],
  ["COPY a.txt b.txt /y", "COPY of several files to one", 3],
  ["COPY a.txt", "COPY without source and destination", 3],
  ["COPY a.txt $DEST", "COPY with a variable (DEST) needs an image", 3],
  ["COPY <<EOF /y\nx\nEOF", "COPY of a here-document needs an image", 3],
  ['COPY "with space" /y', 'COPY with an open "', 3],
  ["WORKDIR /a /b", "WORKDIR with other than one path", 3],
  ["ENV A", "ENV without a value", 3],
  ["ENV A=$HOME", "ENV with a variable (HOME) needs an image", 3],
  ["WORKDIR /app\n\nRUN \\\n  true", "RUN needs an image", 5],
])("refuses %j by name and line", (line, what, at) => {
  symlinkSync("a.txt", join(context, "link"));
  expect(() => read(`# syntax=docker/dockerfile:1\nFROM x\n${line}\n`)).toThrow(
    expect.objectContaining({ name: "InputError", message: expect.stringContaining(`${what}`) }),
  );
  expect(() => read(`# syntax=docker/dockerfile:1\nFROM x\n${line}\n`)).toThrow(`Dockerfile:${at}`);
});

test("refuses what Docker would refuse or read otherwise", () => {
  expect(() => read("WORKDIR /x\n")).toThrow("WORKDIR before FROM");
  expect(() => read("# nothing\n")).toThrow("no FROM");
  expect(() => read("# escape=x\nFROM x\n")).toThrow("escape=x");
  writeFileSync(join(context, ".dockerignore"), "b.txt\n");
  expect(() => read("FROM x\nCOPY . /y\n")).toThrow("COPY with a .dockerignore needs an image");
});
