import { describe, expect, it } from "vitest";
import { temporaryStore } from "../../test/store/temporary-store.ts";
import { sha256 } from "../files/sha256.ts";
import { putOnce } from "./write-once.ts";

describe("putOnce", () => {
  it("passes when the same bytes are put again, as text or as bytes", async () => {
    const store = await temporaryStore();
    await putOnce(store, "a", "ä");
    await putOnce(store, "a", Buffer.from("ä"));
    expect((await store.get("a"))?.body).toEqual(Buffer.from("ä"));
  });

  it("throws on other bytes, names the key and both hashes, and changes nothing", async () => {
    const store = await temporaryStore();
    await putOnce(store, "a/b", "first");
    const [first, second] = [sha256(Buffer.from("first")), sha256(Buffer.from("second"))];
    await expect(putOnce(store, "a/b", "second")).rejects.toMatchObject({
      name: "InvariantError",
      values: { key: "a/b", stored: first, written: second },
    });
    expect((await store.get("a/b"))?.body).toEqual(Buffer.from("first"));
  });
});
