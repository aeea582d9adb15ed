// put-burst.ts <folder> <count>: puts so many objects at once. Prints one line of JSON: the number of puts by outcome.
import { openFileStore } from "../../src/store/file-store.ts";

const [folder = "", count = ""] = process.argv.slice(2);
const counts: Record<string, number> = {};
let message = "";
const count1 = (what: string) => {
  counts[what] = (counts[what] ?? 0) + 1;
};
try {
  const store = await openFileStore(folder);
  await Promise.all(
    Array.from({ length: Number(count) }, async (_, number) => {
      try {
        await store.put(`burst/${number}`, "x".repeat(2_000), { ifNoneMatch: "*" });
        count1("written");
      } catch (error) {
        count1(error instanceof Error ? error.name : "unknown");
        message = String(error);
      }
    }),
  );
} catch (error) {
  count1(error instanceof Error ? error.name : "unknown");
  message = String(error);
}
process.stdout.write(`${JSON.stringify({ counts, message })}\n`);
