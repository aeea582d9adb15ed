// The contract of every object store, as tests. A store's own test file calls it inside a `describe`, with the rules that
// its storage cannot keep and why; such a rule has to fail there, so that the list does not outlive its reasons.
import fc from "fast-check";
import { expect, it } from "vitest";
import { InputError } from "../../src/failure/errors.ts";
import type { ObjectHead, ObjectStore } from "../../src/store/object-store.ts";

/** A fresh, empty store, and another handle on the same storage as a second process would have it. */
export interface StoreUnderTest {
  readonly store: ObjectStore;
  readonly again: () => Promise<ObjectStore>;
}

export interface Exception {
  readonly rule: keyof typeof RULES;
  readonly reason: string;
}

/** @param open makes a store that shares nothing with those made before */
export function objectStoreContract(
  open: () => Promise<StoreUnderTest>,
  { except }: { readonly except: readonly Exception[] },
): void {
  for (const [rule, check] of Object.entries(RULES)) {
    const exception = except.find(other => other.rule === rule);
    if (exception === undefined) it(rule, async () => check(await open()));
    else it.fails(`${rule} (not here: ${exception.reason})`, async () => check(await open()));
  }
}

const NEW = { ifNoneMatch: "*" } as const;

const RULES = {
  "an object that was put is read back with its size": async ({ store }: StoreUnderTest) => {
    const body = Uint8Array.from({ length: 256 }, (_, index) => index);
    expect(await store.put("a/b.bin", body, NEW)).toMatchObject({ written: true });
    const found = await store.get("a/b.bin");
    expect(found).toMatchObject({ key: "a/b.bin", sizeBytes: 256 });
    expect(Buffer.compare(found?.body ?? new Uint8Array(), body)).toBe(0);
    expect(await store.head("a/b.bin")).toEqual({ key: "a/b.bin", sizeBytes: 256 });
    expect(await collect(store.stream("a/b.bin"))).toEqual(Buffer.from(body));
  },

  "text is stored as UTF-8": async ({ store }: StoreUnderTest) => {
    await store.put("a", "ä€😀", NEW);
    expect(await textOf(store, "a")).toBe("ä€😀");
    expect(await store.head("a")).toEqual({ key: "a", sizeBytes: 9 });
  },

  "an empty object is an object": async ({ store }: StoreUnderTest) => {
    await store.put("a", "", NEW);
    expect(await store.get("a")).toMatchObject({ sizeBytes: 0 });
    expect(await collect(store.stream("a"))).toEqual(Buffer.alloc(0));
    expect(await keys(store, "")).toEqual(["a"]);
  },

  "a large object streams in order": async ({ store }: StoreUnderTest) => {
    const body = new Uint8Array(Uint32Array.from({ length: 2_500_000 }, (_, index) => index).buffer);
    await store.put("large", body, NEW);
    let chunkCount = 0;
    for await (const _ of store.stream("large")) chunkCount++;
    expect(chunkCount).toBeGreaterThan(1);
    expect(Buffer.compare(await collect(store.stream("large")), body)).toBe(0);
    expect(Buffer.compare((await store.get("large"))?.body ?? new Uint8Array(), body)).toBe(0);
  },

  "content that comes in pieces is stored as it would be whole": async ({ store }: StoreUnderTest) => {
    const pieces = [0, 1, 4_999_999, 3, 0, 7_000_000].map((length, piece) =>
      new Uint8Array(length).map((_, at) => (at * 31 + piece) % 251),
    );
    let passes = 0;
    const source = {
      sizeBytes: 12_000_003,
      async *pieces() {
        passes++;
        yield* pieces;
      },
    };
    expect(await store.put("pieces", source, NEW)).toMatchObject({ written: true });
    expect(passes).toBe(1);
    expect(await store.head("pieces")).toEqual({ key: "pieces", sizeBytes: 12_000_003 });
    expect(Buffer.compare(await collect(store.stream("pieces")), Buffer.concat(pieces))).toBe(0);
    // The key is taken: nothing of the content is made, let alone sent.
    expect(await store.put("pieces", source, NEW)).toEqual({ written: false });
    const etag = (await store.get("pieces"))?.etag ?? "";
    const replaced = await store.put("pieces", { ...source, sizeBytes: 12_000_003 }, { ifMatch: etag });
    expect(replaced).toMatchObject({ written: true });
    expect(await store.put("pieces", source, { ifMatch: "another" })).toEqual({ written: false });
  },

  "content that breaks off, or is not as long as it said, leaves nothing": async ({
    store,
  }: StoreUnderTest) => {
    const part = new Uint8Array(6_000_000);
    const broken = {
      sizeBytes: 12_000_000,
      *pieces() {
        yield part;
        throw new Error("disk gone");
      },
    };
    await expect(store.put("broken", broken, NEW)).rejects.toThrow("disk gone");
    for (const sizeBytes of [5_999_999, 6_000_001, 12_000_000])
      await expect(store.put("short", { sizeBytes, pieces: () => [part] }, NEW)).rejects.toMatchObject({
        name: "InvariantError",
      });
    expect(await keys(store, "")).toEqual([]);
  },

  "a key that was never put holds nothing": async ({ store }: StoreUnderTest) => {
    await store.put("a/b", "1", NEW);
    for (const key of ["a", "a/b/c", "a/bc", "b"]) {
      expect(await store.get(key)).toBeUndefined();
      expect(await store.head(key)).toBeUndefined();
      await expect(collect(store.stream(key))).rejects.toThrow(InputError);
      await store.delete(key);
    }
    expect(await textOf(store, "a/b")).toBe("1");
  },

  "a second put with ifNoneMatch changes nothing": async ({ store, again }: StoreUnderTest) => {
    await store.put("a", "first", NEW);
    expect(await store.put("a", "second", NEW)).toEqual({ written: false });
    expect(await (await again()).put("a", "third", NEW)).toEqual({ written: false });
    expect(await textOf(store, "a")).toBe("first");
  },

  "of many writers with ifNoneMatch exactly one wins, and its bytes stay": async ({
    store,
    again,
  }: StoreUnderTest) => {
    const stores = [store, await again()];
    for (const key of ["a/b/c/1", "a/b/c/2", "d/3"]) {
      const results = await Promise.all(
        Array.from({ length: 16 }, (_, writer) => stores[writer % 2]?.put(key, `writer ${writer}`, NEW)),
      );
      const winners = results.flatMap((result, writer) => (result?.written ? [`writer ${writer}`] : []));
      expect(winners).toEqual([await textOf(store, key)]);
    }
  },

  "ifMatch replaces only the version that was read": async ({ store }: StoreUnderTest) => {
    const first = await store.put("a", "1", NEW);
    const second = await store.put("a", "2", { ifMatch: etagOf(first) });
    expect(etagOf(second)).toBe((await store.get("a"))?.etag);
    expect(await store.put("a", "3", { ifMatch: etagOf(first) })).toEqual({ written: false });
    expect(await textOf(store, "a")).toBe("2");
    expect(await store.put("a", "4", { ifMatch: etagOf(second) })).toMatchObject({ written: true });
    expect(await textOf(store, "a")).toBe("4");
  },

  "ifMatch never creates": async ({ store }: StoreUnderTest) => {
    const etag = etagOf(await store.put("a", "1", NEW));
    expect(await store.put("b", "1", { ifMatch: etag })).toEqual({ written: false });
    await store.delete("a");
    expect(await store.put("a", "2", { ifMatch: etag })).toEqual({ written: false });
    expect(await keys(store, "")).toEqual([]);
  },

  "of many writers with the same ifMatch exactly one wins": async ({ store, again }: StoreUnderTest) => {
    const stores = [store, await again()];
    let etag = etagOf(await store.put("a", "start", NEW));
    for (let round = 0; round < 3; round++) {
      const results = await Promise.all(
        Array.from({ length: 12 }, (_, writer) =>
          stores[writer % 2]?.put("a", `round ${round} writer ${writer}`, { ifMatch: etag }),
        ),
      );
      const winners = results.flatMap((result, writer) =>
        result?.written ? [{ text: `round ${round} writer ${writer}`, etag: result.etag }] : [],
      );
      const found = await store.get("a");
      expect(winners).toEqual([{ text: await textOf(store, "a"), etag: found?.etag }]);
      etag = found?.etag ?? "";
    }
  },

  "a reader never sees half an object while it is replaced": async ({ store, again }: StoreUnderTest) => {
    const size = 300_000;
    let etag = etagOf(await store.put("a", Buffer.alloc(size, 0), NEW));
    const reader = await again();
    let isDone = false;
    const seen = new Set<number>();
    const reading = (async () => {
      while (!isDone) {
        const body = (await reader.get("a"))?.body ?? new Uint8Array();
        expect(body.length).toBe(size);
        expect(body.every(byte => byte === body[0])).toBe(true);
        seen.add(body[0] ?? -1);
      }
    })();
    for (let version = 1; version <= 20; version++)
      etag = etagOf(await store.put("a", Buffer.alloc(size, version), { ifMatch: etag }));
    isDone = true;
    await reading;
    expect(seen.size).toBeGreaterThan(1);
  },

  "a deleted object is gone, and its key is free": async ({ store, again }: StoreUnderTest) => {
    await store.put("a/b/c", "1", NEW);
    await store.put("a/d", "1", NEW);
    await (await again()).delete("a/b/c");
    await store.delete("a/b/c");
    expect(await store.get("a/b/c")).toBeUndefined();
    expect(await keys(store, "")).toEqual(["a/d"]);
    expect(await store.put("a/b/c", "2", NEW)).toMatchObject({ written: true });
    expect(await textOf(store, "a/b/c")).toBe("2");
  },

  "a replacement does not bring back what is deleted at the same time": async ({
    store,
    again,
  }: StoreUnderTest) => {
    const other = await again();
    for (let round = 0; round < 40; round++) {
      const etag = etagOf(await store.put("a", "1", NEW));
      const [replaced] = await Promise.all([
        store.put("a", "2", { ifMatch: etag }),
        new Promise(resolve => setTimeout(resolve, (round % 10) / 5)).then(() => other.delete("a")),
      ]);
      expect(await store.get("a"), `replaced: ${replaced.written}`).toBeUndefined();
    }
  },

  "where all objects below a key are gone, the key is free": async ({ store }: StoreUnderTest) => {
    await store.put("a/b/c", "1", NEW);
    await store.delete("a/b/c");
    expect(await store.put("a", "2", NEW)).toMatchObject({ written: true });
    expect(await keys(store, "")).toEqual(["a"]);
  },

  "an object may lie at a key and others below it": async ({ store }: StoreUnderTest) => {
    expect(await store.put("a", "1", NEW)).toMatchObject({ written: true });
    expect(await store.put("a/b", "2", NEW)).toMatchObject({ written: true });
    expect(await keys(store, "")).toEqual(["a", "a/b"]);
  },

  "a list is in byte order of whole keys, not of folders": async ({ store }: StoreUnderTest) => {
    // U+FF5E sorts before U+1F600 by bytes, but behind its surrogates by UTF-16.
    const ordered = ["B", "a-b/c", "a-c", "a.b", "a/b", "a/b-/c", "a0", "aa/b/c", "aé", "a～", "a😀"];
    for (const key of [...ordered].reverse()) await store.put(key, key, NEW);
    expect(await keys(store, "")).toEqual(ordered);
  },

  "a prefix may end anywhere in a key": async ({ store }: StoreUnderTest) => {
    for (const key of ["a/b1/x", "a/b1/y", "a/b2", "a/c", "ab"]) await store.put(key, key, NEW);
    const table: readonly (readonly [string, readonly string[]])[] = [
      ["", ["a/b1/x", "a/b1/y", "a/b2", "a/c", "ab"]],
      ["a", ["a/b1/x", "a/b1/y", "a/b2", "a/c", "ab"]],
      ["a/", ["a/b1/x", "a/b1/y", "a/b2", "a/c"]],
      ["a/b", ["a/b1/x", "a/b1/y", "a/b2"]],
      ["a/b1", ["a/b1/x", "a/b1/y"]],
      ["a/b1/", ["a/b1/x", "a/b1/y"]],
      ["a/b2", ["a/b2"]],
      ["a/b2/", []],
      ["b/c/d", []],
    ];
    for (const [prefix, expected] of table) expect(await keys(store, prefix)).toEqual(expected);
  },

  "the folders below a prefix are those that hold objects": async ({ store }: StoreUnderTest) => {
    for (const key of ["f/b/1", "f/b/2", "f/a/x/y", "f/file", "g/c/1"])
      await store.put(key, "1", { ifNoneMatch: "*" });
    await store.put("f/gone/1", "1", { ifNoneMatch: "*" });
    await store.delete("f/gone/1");
    expect(await Array.fromAsync(store.folders("f/"))).toEqual(["a", "b"]);
    expect(await Array.fromAsync(store.folders("none/"))).toEqual([]);
  },

  "a list tells sizes and goes beyond a page of 1,000": async ({ store }: StoreUnderTest) => {
    const expected: ObjectHead[] = Array.from({ length: 1_010 }, (_, index) => ({
      key: `list/${String(index).padStart(4, "0")}`,
      sizeBytes: index % 7,
    }));
    await eachOf(expected, 32, ({ key, sizeBytes }) => store.put(key, "x".repeat(sizeBytes), NEW));
    expect(await Array.fromAsync(store.list("list/"))).toEqual(expected);
  },

  "a list that is left early ends": async ({ store }: StoreUnderTest) => {
    for (const key of ["a/1", "b/2", "c/3"]) await store.put(key, "", NEW);
    for await (const { key } of store.list("")) {
      expect(key).toBe("a/1");
      break;
    }
    expect(await keys(store, "b")).toEqual(["b/2"]);
  },

  "a key that could leave the store or confuse a reader is refused": async ({ store }: StoreUnderTest) => {
    const refused = [
      ["", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/./b", "a/../b", "a/.."],
      ["a\0b", "a\\b", "a\nb", "a\x7f", "\ud800", ".t1-store", ".t1-store/a"],
      ["x".repeat(256), "é".repeat(128), `${"x/".repeat(450)}x`],
    ].flat();
    for (const key of refused) {
      await expect(store.put(key, "1", NEW), key).rejects.toThrow(InputError);
      await expect(store.get(key), key).rejects.toThrow(InputError);
      await expect(store.head(key), key).rejects.toThrow(InputError);
      await expect(store.delete(key), key).rejects.toThrow(InputError);
      await expect(collect(store.stream(key)), key).rejects.toThrow(InputError);
    }
    for (const prefix of ["/", "../", "a//", "a/../b", "a\0", ".t1-store/"])
      await expect(keys(store, prefix), prefix).rejects.toThrow(InputError);
    expect(await keys(store, "")).toEqual([]);
  },

  "a key that only looks odd is a key": async ({ store }: StoreUnderTest) => {
    const odd = ["...", "..a", ".a", "a b", "a%2Fb", "a..b/c", "a:b", "a?b#c", "é", "~", "x".repeat(255)];
    for (const key of odd) await store.put(key, key, NEW);
    for (const key of odd) expect(await textOf(store, key)).toBe(key);
    expect(await keys(store, "")).toEqual([...odd].sort());
    expect(await keys(store, "..")).toEqual(["...", "..a"]);
  },

  "a store does what a map from keys to bytes does": async ({ store, again }: StoreUnderTest) => {
    const stores = [store, await again()];
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async operations => {
        const root = `run-${run++}/`;
        const model = new Map<string, string>();
        for (const step of operations) await compare(stores[step.handle] ?? store, root, model, step);
        const listed = await Promise.all(
          (await keys(store, root)).map(async key => [key, await textOf(store, key)]),
        );
        expect(listed).toEqual([...model].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      }),
      { numRuns: 40 },
    );
  },
};

type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

// Names of folders and of objects are apart, since not every store lets a key be both.
const key = fc
  .tuple(
    fc.array(fc.constantFrom("a", "a-", "a.", "b"), { maxLength: 3 }),
    fc.constantFrom("a0", "a-b", "é", "😀"),
  )
  .map(([folders, name]) => [...folders, name].join("/"));

const operation = fc.record({
  kind: fc.constantFrom("create", "create", "replace", "replace-stale", "get", "delete", "list"),
  key,
  body: fc.string({ maxLength: 20 }),
  handle: fc.nat(1),
});

async function compare(
  store: ObjectStore,
  root: string,
  model: Map<string, string>,
  { kind, key: name, body }: Operation,
): Promise<void> {
  const key = root + name;
  const held = model.get(key);
  switch (kind) {
    case "create":
      expect((await store.put(key, body, NEW)).written).toBe(held === undefined);
      if (held === undefined) model.set(key, body);
      return;
    case "replace": {
      const found = await store.get(key);
      expect((await store.put(key, body, { ifMatch: found?.etag ?? "none" })).written).toBe(
        held !== undefined,
      );
      if (held !== undefined) model.set(key, body);
      return;
    }
    case "replace-stale":
      expect(await store.put(key, body, { ifMatch: "an etag of nothing" })).toEqual({ written: false });
      return;
    case "get":
      expect(await textOf(store, key)).toBe(held);
      return;
    case "delete":
      await store.delete(key);
      model.delete(key);
      return;
    case "list": {
      const prefix = key.slice(0, root.length + (body.length % (name.length + 1)));
      if (!prefix.isWellFormed()) return;
      const expected = [...model.keys()].filter(other => other.startsWith(prefix));
      expect(new Set(await keys(store, prefix))).toEqual(new Set(expected));
      return;
    }
    default:
      kind satisfies never;
  }
}

function etagOf(result: { readonly written: boolean; readonly etag?: string }): string {
  expect(result.written).toBe(true);
  return result.etag ?? "";
}

async function textOf(store: ObjectStore, key: string): Promise<string | undefined> {
  const found = await store.get(key);
  return found && Buffer.from(found.body).toString();
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

async function keys(store: ObjectStore, prefix: string): Promise<readonly string[]> {
  return (await Array.fromAsync(store.list(prefix))).map(({ key }) => key);
}

async function eachOf<Item>(
  items: readonly Item[],
  atOnce: number,
  action: (item: Item) => Promise<unknown>,
): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const item of rest) await action(item);
    }),
  );
}
