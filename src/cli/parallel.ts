// Many pieces of work, a few at a time.

/** Results in the order of the items. The first error ends it, after the pieces under way. */
export async function parallel<Item, Result>(
  items: Iterable<Item>,
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const list = [...items];
  const results = new Array<Result>(list.length);
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let index = next++; index < list.length; index = next++) results[index] = await work(list[index]);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, list.length) }, worker));
  return results;
}
