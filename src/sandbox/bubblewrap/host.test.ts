import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRunFolder } from "../run-folder.ts";
import { assertKernel, openHost } from "./host.ts";
import { findHostTools } from "./host-tools.ts";

let parent: string;
const own = `t1-${process.getuid?.()}`;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), "t1-host-"));
  chmodSync(parent, 0o755);
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

test("tools are found in the folders of administrators, whatever PATH says", () => {
  expect(findHostTools("").perl).toMatch(/^\/.*\/perl$/);
  expect(findHostTools("relative::/nonexistent").bwrap).toMatch(/^\/.*\/bwrap$/);
});

test("an own tool on PATH comes first", () => {
  writeFileSync(join(parent, "tar"), "#!/bin/sh\n", { mode: 0o755 });
  writeFileSync(join(parent, "perl"), "not executable");
  const tools = findHostTools(`${parent}:/usr/bin`);
  expect(tools.tar).toBe(join(parent, "tar"));
  expect(tools.perl).not.toBe(join(parent, "perl"));
});

test("the toolkit is copied once and mended when somebody changed it", () => {
  const { toolkit } = openHost(parent);
  const tar = join(toolkit, "bin", "tar");
  const { ino, size } = statSync(tar);
  expect(openHost(parent).toolkit).toBe(toolkit);
  expect(statSync(tar).ino).toBe(ino);
  chmodSync(tar, 0o755);
  writeFileSync(tar, "#!/bin/sh\necho owned\n");
  expect(openHost(parent).toolkit).toBe(toolkit);
  expect(statSync(tar).size).toBe(size);
  expect(readdirSync(join(parent, own)).filter(name => name.startsWith("toolkit"))).toHaveLength(1);
});

test("a folder that somebody else may have made or may write is refused", () => {
  mkdirSync(join(parent, own));
  chmodSync(join(parent, own), 0o777);
  expect(() => openRunFolder(parent)).toThrow("cannot be trusted");
  rmSync(join(parent, own), { recursive: true });
  mkdirSync(join(parent, "elsewhere"));
  symlinkSync(join(parent, "elsewhere"), join(parent, own));
  expect(() => openRunFolder(parent)).toThrow("cannot be trusted");
  if (process.getuid?.() !== 0) return;
  rmSync(join(parent, own));
  mkdirSync(join(parent, own));
  chownSync(join(parent, own), 12_345, 12_345);
  expect(() => openRunFolder(parent)).toThrow("cannot be trusted");
});

test.runIf(process.getuid?.() === 0)(
  "a folder that the sandbox's user cannot pass is named before anything starts",
  () => {
    chmodSync(parent, 0o700);
    expect(() => openHost(parent)).toThrow("programs cannot be run from the folder for sandboxes");
  },
);

test.each([
  ["x64", "5.11.0", undefined],
  ["arm64", "6.1.0-13-arm64", undefined],
  ["x64", "10.0", undefined],
  ["x64", "5.10.200", "need Linux 5.11 or later, this is 5.10.200"],
  ["x64", "4.18.0-553.el8", "need Linux 5.11 or later"],
  ["riscv64", "6.12.0", "do not run on riscv64"],
])("%s with Linux %s is known before anything starts", (machine, version, problem) => {
  const check = () => assertKernel(machine, version);
  if (problem === undefined) expect(check).not.toThrow();
  else expect(check).toThrow(problem);
});
