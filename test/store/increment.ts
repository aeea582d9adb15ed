// increment.ts <folder> <key> <times>: adds one to a counter by compare-and-swap, so many times that it succeeded.
// Prints a line after each success.
import { openFileStore } from "../../src/store/file-store.ts";

const [folder = "", key = "", times = ""] = process.argv.slice(2);
const store = await openFileStore(folder);
for (let done = 0; done < Number(times); ) {
  const found = await store.get(key);
  if (found === undefined) throw new Error(`no counter ${key}`);
  const next = Number(Buffer.from(found.body).toString()) + 1;
  const result = await store.put(key, String(next), { ifMatch: found.etag });
  if (!result.written) continue;
  done++;
  process.stdout.write(`${next}\n`);
}
