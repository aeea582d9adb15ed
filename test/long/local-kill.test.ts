import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "vitest";
import { killAndResume } from "../asl/kill-and-resume.ts";

it("a state machine's runner survives ten kills at different tasks", async () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-local-kill-"));
  try {
    await killAndResume(folder, [1, 1, 2, 1, 3, 1, 1, 2, 1, 1]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
