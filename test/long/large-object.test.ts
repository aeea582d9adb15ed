// An object beyond what Node takes in a single call (2 GiB): hashed, written, read, copied and verified in pieces.
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { PIECE_BYTES } from "../../src/files/content.ts";
import { openSafetensors, safetensorsSource, type TensorSource } from "../../src/safetensors/format.ts";
import { openFolder, writeFolder } from "../../src/store/manifest.ts";
import { temporaryStore } from "../store/temporary-store.ts";

const PIECE = new Uint8Array(PIECE_BYTES).map((_, at) => at % 253);
const SIZE = 5 * 2 ** 29; // 2.5 GiB

const tensor: TensorSource = {
  dtype: "U8",
  shape: [SIZE],
  *pieces() {
    for (let at = 0; at < SIZE; at += PIECE.length) yield PIECE;
  },
};

it("is written, copied and verified without being in memory", async () => {
  const store = await temporaryStore();
  const before = process.memoryUsage().rss;
  const body = safetensorsSource([["large", tensor]]);
  const folder = await writeFolder(store, "from/", [{ path: "a", body }]);
  const copy = await writeFolder(store, "to/", [{ path: "a", body: folder.source("a") }]);
  await copy.verify();
  const expected = createHash("sha256");
  for (const piece of body.pieces() as Iterable<Uint8Array>) expected.update(piece);
  const manifest = Buffer.from((await store.get("to/manifest.json"))?.body ?? []).toString();
  expect(JSON.parse(manifest).files).toEqual([
    { path: "a", sizeBytes: body.sizeBytes, sha256: expected.digest("hex") },
  ]);
  // The most there ever was, in KiB: 85 MiB were measured, about twenty pieces.
  expect(process.resourceUsage().maxRSS * 1024 - before).toBeLessThan(200 * 2 ** 20);
  const whole = await openFolder(store, "to/");
  const file = await openSafetensors(whole?.source("a") ?? body, "a");
  for await (const [name, { bytes }] of file.tensors()) {
    expect([name, bytes.length]).toEqual(["large", SIZE]);
    expect(Buffer.compare(bytes.subarray(SIZE - PIECE.length), PIECE)).toBe(0);
  }
});
