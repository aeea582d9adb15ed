import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { pathOfText, readNames, readTarget } from "./path-text.ts";

/** Bytes of a name, and their text by hand after PEP 383. */
const NAMES = [
  ["c3a9", "é"],
  ["64ff", "d\udcff"],
  ["e282", "\udce2\udc82"],
  ["e282ac", "€"],
  ["f09f8e89ff80", "🎉\udcff\udc80"],
  ["efbfbd", "\ufffd"],
  ["efbfbdff", "\ufffd\udcff"],
  ["edb280", "\udced\udcb2\udc80"],
] as const;

test("every name of a file is a text of its own, and comes back from JSON byte for byte", () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-names-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [hex] of NAMES)
    writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(hex, "hex")]), "");
  expect(readNames(folder).sort()).toEqual(NAMES.map(([, text]) => text).sort());
  const repeated = (text: string): string => JSON.parse(JSON.stringify(text));
  const bytes = NAMES.map(([, text]) => Buffer.from(pathOfText(repeated(text))).toString("hex"));
  expect(bytes).toEqual(NAMES.map(([hex]) => hex));
});

test("so does what a link leads to", () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-names-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "d"));
  symlinkSync(Buffer.from("../x\xff", "latin1"), join(folder, "d", "l"));
  expect(readTarget(join(folder, "d/l"))).toBe("../x\udcff");
});
