// put-many.ts <folder> <prefix> <in flight>: puts objects that carry their own hash until it is killed. Prints the key
// of each object after it was put.
import { openFileStore } from "../../src/store/file-store.ts";
import { selfDescribing } from "./self-describing.ts";

const [folder = "", prefix = "", inFlight = ""] = process.argv.slice(2);
const store = await openFileStore(folder);
let next = 0;
await Promise.all(
  Array.from({ length: Number(inFlight) }, async () => {
    for (;;) {
      const number = next++;
      const key = `${prefix}${number % 17}/${number}`;
      await store.put(key, selfDescribing((number * 7919) % 200_000), { ifNoneMatch: "*" });
      process.stdout.write(`${key}\n`);
    }
  }),
);
