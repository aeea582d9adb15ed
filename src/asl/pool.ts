// So many at once, in the order of their numbers.
import type { Cancellation } from "./cancellation.ts";

/**
 * Opens and runs the numbers 0 to `count` - 1, at most `concurrency` under way. All that may start together are opened
 * before the first of them runs. Ends early, without opening more, when it is cancelled; waits for those under way.
 *
 * @param run never rejects
 */
export async function runPool<T>(
  count: number,
  concurrency: number,
  cancellation: Cancellation,
  {
    open,
    run,
  }: { readonly open: (index: number) => T; readonly run: (index: number, opened: T) => Promise<void> },
): Promise<void> {
  const width = Math.min(count, concurrency);
  let next = width;
  const first = Array.from({ length: width }, (_, index) => open(index));
  await Promise.all(
    first.map(async (opened, index) => {
      await run(index, opened);
      while (next < count && !cancellation.isCancelled) {
        const mine = next++;
        await run(mine, open(mine));
      }
    }),
  );
}
