import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { lockFolder } from "./folder-lock.ts";

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "t1-lock-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

it("gives a folder that is not there yet to one at a time", async () => {
  const folder = join(freshFolder(), "a/b");
  const release = await lockFolder(folder);
  await expect(lockFolder(folder)).rejects.toMatchObject({ name: "StoreUnavailable" });
  await release();
  await (await lockFolder(folder))();
});

it("says so where no folder can be", async () => {
  const file = join(freshFolder(), "file");
  writeFileSync(file, "");
  // Below /proc, as below a root that was removed, Node's own recursive way tries for ever.
  for (const folder of ["/proc/t1/journals", file, join(file, "journals")])
    await expect(lockFolder(folder), folder).rejects.toMatchObject({
      name: "StoreUnavailable",
      message: expect.stringContaining(folder),
    });
});
