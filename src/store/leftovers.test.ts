import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { removeLeftovers } from "./temporary-file.ts";

const MODULE = JSON.stringify(join(import.meta.dirname, "temporary-file.ts"));
const node = (way: readonly string[], code: string): string => {
  const words = ["--input-type=module", "-e", `import * as m from ${MODULE}; ${code}`];
  const [program = "", ...rest] = [...way, process.execPath, ...words];
  return execFileSync(program, rest, { encoding: "utf8" });
};

it.skipIf(process.getuid?.() !== 0)(
  "leftovers of another user are in nobody's way (needs root, to make them)",
  async () => {
    const parent = mkdtempSync(join(tmpdir(), "t1-left-"));
    try {
      // The process that this names has ended when it is swept.
      const left = node([], `process.stdout.write(m.folderOfThisProcess(${JSON.stringify(parent)}))`);
      mkdirSync(join(left, "pipes"), { recursive: true });
      writeFileSync(join(left, "pipes/0"), "");
      chownSync(join(left, "pipes"), 65_534, 65_534);
      node(["unshare", "-Ur"], `await m.removeLeftovers(${JSON.stringify(parent)})`);
      expect(existsSync(join(left, "pipes/0"))).toBe(true);
      await removeLeftovers(parent);
      expect(existsSync(left)).toBe(false);
    } finally {
      rmSync(parent, { recursive: true, force: true });
    }
  },
);
