// lock-and-die.ts <lock> <file> <times>: adds one to a number in a file, so many times, each time under the lock but
// else with no care at all; then kills itself with the lock in hand.
import { readFile, writeFile } from "node:fs/promises";
import { withFileLock } from "../../src/files/file-lock.ts";

const [lock = "", file = "", times = ""] = process.argv.slice(2);
for (let done = 1; ; done++) {
  await withFileLock(lock, { waitMs: 20_000 }, async () => {
    await writeFile(file, String(Number(await readFile(file, "utf8")) + 1));
    if (done === Number(times)) process.kill(process.pid, "SIGKILL");
  });
}
