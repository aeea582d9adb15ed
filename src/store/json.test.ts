import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { encodeJson, encodeJsonLines, parseJson, readJson, readJsonLines } from "./json.ts";

const Episode = z.strictObject({
  task: z.string(),
  turns: z.array(z.strictObject({ tokens: z.int().positive() })),
});
const NEW = { ifNoneMatch: "*" } as const;
const whole = { task: "fix-perms", turns: [{ tokens: 3 }, { tokens: 5 }] };

describe("JSON objects", () => {
  it("are read as they were written", async () => {
    const store = await temporaryStore();
    await store.put("one", encodeJson(whole), NEW);
    expect(await readJson(store, "one", Episode)).toEqual(whole);
    await store.put("lines", encodeJsonLines([whole, { ...whole, task: "a\nb\u2028" }]), NEW);
    expect(await readJsonLines(store, "lines", Episode)).toEqual([whole, { ...whole, task: "a\nb\u2028" }]);
    await store.put("none", encodeJsonLines([]), NEW);
    expect(await readJsonLines(store, "none", Episode)).toEqual([]);
  });

  it("keep the order of keys and end in a newline", () => {
    expect(Buffer.from(encodeJson({ b: 1, a: [1, "ä"] })).toString()).toBe(
      '{\n  "b": 1,\n  "a": [\n    1,\n    "ä"\n  ]\n}\n',
    );
    expect(Buffer.from(encodeJsonLines([{ b: 1, a: 2 }, 3])).toString()).toBe('{"b":1,"a":2}\n3\n');
  });

  it("return the value for any JSON value", async () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        const normal = JSON.parse(JSON.stringify(value));
        expect(parseJson(encodeJson(value), "a", z.unknown())).toEqual(normal);
      }),
    );
  });

  it("are called corrupt wherever they are cut off, with the key and what to do", () => {
    const body = encodeJson(whole);
    // The cut that takes only the newline leaves a whole value.
    for (let length = 0; length < body.length - 1; length++) {
      expect(() => parseJson(body.subarray(0, length), "runs/x/episode.json", Episode), `${length}`).toThrow(
        /^corrupt object: runs\/x\/episode\.json: expected JSON, got \d+ characters that are none: .*\n {2}fix: restore it/,
      );
    }
  });

  it("are called corrupt when the last line is cut off, even where the rest of it is JSON", async () => {
    const store = await temporaryStore();
    await store.put("a", '{"task":"x","turns":[]}\n{"task":"x","turns":[]}', NEW);
    await expect(readJsonLines(store, "a", Episode)).rejects.toThrow(
      "corrupt object: a: expected a newline at the end of line 2",
    );
    await store.put("b", '{"task":"x","turns":[]}\n{"task":"x"\n', NEW);
    await expect(readJsonLines(store, "b", Episode)).rejects.toThrow("corrupt object: b:2: expected JSON");
  });

  it("are called corrupt when they are no UTF-8", () => {
    expect(() => parseJson(Buffer.from([0x22, 0xff, 0x22]), "a", z.string())).toThrow(
      "corrupt object: a: expected UTF-8 text, got 3 bytes that are none",
    );
  });

  it("that do not fit name the key, the place and what was expected", async () => {
    const store = await temporaryStore();
    await store.put("a", encodeJson({ task: 1, turns: [{ tokens: 1 }, { tokens: 0, more: 1 }] }), NEW);
    const reading = readJson(store, "a", Episode);
    await expect(reading).rejects.toMatchObject({ name: "InputError" });
    await expect(reading).rejects.toThrow(/^invalid object: a: task: .*string.*; turns\[1\]\.tokens: .*>0/);
    await expect(reading).rejects.toThrow(/turns\[1\]: .*"more"/);
    await store.put("b", '{"task":"x","turns":[]}\n[]\n', NEW);
    await expect(readJsonLines(store, "b", Episode)).rejects.toThrow(/^invalid object: b:2: \(top level\): /);
  });

  it("that are missing name the key and the store", async () => {
    const store = await temporaryStore();
    await expect(readJson(store, "a/b", Episode)).rejects.toThrow(
      `missing object: a/b: expected it in ${store.url}`,
    );
  });

  it("refuse what JSON would change in silence", () => {
    for (const value of [
      Number.NaN,
      Number.POSITIVE_INFINITY,
      new Map([[1, 2]]),
      new Set([1]),
      new Float32Array(1),
    ]) {
      expect(() => encodeJson({ metrics: [value] })).toThrow("JSON cannot hold this");
      expect(() => encodeJsonLines([value])).toThrow("JSON cannot hold this");
    }
  });
});
