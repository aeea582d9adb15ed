import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { claimContract } from "../../../test/contracts/claim.ts";
import { objectStoreContract } from "../../../test/contracts/object-store.ts";
import { ownerLeaseContract } from "../../../test/contracts/owner-lease.ts";
import { runStateContract } from "../../../test/contracts/run-state.ts";
import { type FaultProxy, type SeenRequest, startFaultProxy } from "../../../test/store/fault-proxy.ts";
import { findSeaweedfs, type S3Server, startSeaweedfs } from "../../../test/store/seaweedfs.ts";
import { openStore } from "../open-store.ts";
import { openS3Store, type S3StoreOptions } from "./s3-store.ts";

const NEW = { ifNoneMatch: "*" } as const;
const MIB = 2 ** 20;

/** With parts as small as S3 allows; in a hurry, but not so much that a busy machine looks like a silent server. */
const OPTIONS = {
  patience: {
    ...{ tries: 5, firstPauseMs: 1, longestPauseMs: 20 },
    ...{ connectMs: 10_000, silenceMs: 4_000, requestMs: 20_000 },
  },
  parts: { wholeBytes: 5 * MIB, partBytes: 5 * MIB },
} satisfies S3StoreOptions;

const found = await findSeaweedfs();
const title = "missing" in found ? `S3 store (skipped: ${found.missing})` : "S3 store";

describe.skipIf("missing" in found)(title, { timeout: 120_000 }, () => {
  let server: S3Server;
  let bucket: string;
  let storeCount = 0;
  beforeAll(async () => {
    server = await startSeaweedfs("program" in found ? found.program : "");
    bucket = await server.createBucket();
    // The first write to a bucket makes its volumes, for which nobody in a hurry waits.
    await (await openS3Store(urlAt(server.endpoint))).put("first", "", NEW);
  }, 90_000);
  afterAll(() => server?.stop());

  const urlAt = (endpoint: string, prefix = `store-${storeCount++}`): string =>
    `s3://${bucket}/${prefix}?endpoint=${encodeURIComponent(endpoint)}`;

  describe("of a real server", () => {
    objectStoreContract(
      async () => {
        const url = urlAt(server.endpoint);
        return { store: await openS3Store(url), again: () => openStore(url) };
      },
      {
        except: [
          {
            rule: "where all objects below a key are gone, the key is free",
            reason: "SeaweedFS keeps the folder for a while, AWS has none",
          },
          {
            rule: "the folders below a prefix are those that hold objects",
            reason: "SeaweedFS lists an empty folder for a while, AWS has none",
          },
        ],
      },
    );
    ownerLeaseContract(() => openS3Store(urlAt(server.endpoint)));
    claimContract(() => openS3Store(urlAt(server.endpoint)));
    runStateContract(() => openS3Store(urlAt(server.endpoint)));

    it("is found at AWS_ENDPOINT_URL", async () => {
      setEnvironment({ AWS_ENDPOINT_URL: server.endpoint });
      const store = await openStore(`s3://${bucket}/by-environment`);
      expect(store.url).toBe(`s3://${bucket}/by-environment`);
      await store.put("a", "1", NEW);
      expect(await (await openS3Store(urlAt(server.endpoint, "by-environment"))).head("a")).toEqual({
        key: "a",
        sizeBytes: 1,
      });
    });

    it("keeps stores of one bucket apart by their prefixes, also where one begins like the other", async () => {
      const [short, long] = [urlAt(server.endpoint, "a/b"), urlAt(server.endpoint, "a/b-c")];
      const [one, other] = [await openS3Store(short), await openS3Store(long)];
      await one.put("x", "1", NEW);
      await other.put("x", "2", NEW);
      await other.put("y/z", "2", NEW);
      expect(await Array.fromAsync(one.list(""))).toEqual([{ key: "x", sizeBytes: 1 }]);
      expect(await Array.fromAsync(one.folders(""))).toEqual([]);
      expect(await Array.fromAsync(other.folders(""))).toEqual(["y"]);
    });
  });

  describe("on a bad network", () => {
    let proxy: FaultProxy;
    beforeAll(async () => {
      proxy = await startFaultProxy(server.endpoint);
    });
    afterAll(() => proxy?.stop());

    const openBad = (prefix?: string) => openS3Store(urlAt(proxy.endpoint, prefix), OPTIONS);
    const openGood = (prefix: string) => openS3Store(urlAt(server.endpoint, prefix));
    const on = (method: string, text: string) => (request: SeenRequest) =>
      request.method === method && request.url.includes(text);
    const seen = (method: string, text: string) => proxy.seen.filter(on(method, text));

    it("lets one of twenty writers win while S3 answers some with 409 (localstack#13294, case B44)", async () => {
      const stores = [await openBad("b44"), await openBad("b44")];
      const conflict = { kind: "refuse", status: 409, code: "ConditionalRequestConflict" } as const;
      proxy.plan(on("PUT", "b44/a"), conflict, undefined, conflict, conflict, undefined, conflict);
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, writer) => stores[writer % 2]?.put("a", `writer ${writer}`, NEW)),
      );
      const winners = results.flatMap((result, writer) => (result?.written ? [`writer ${writer}`] : []));
      expect(winners).toEqual([await textOf(await openGood("b44"), "a")]);
      const etag = (await stores[0]?.get("a"))?.etag ?? "";
      proxy.plan(on("PUT", "b44/a"), conflict, conflict);
      const replaced = await Promise.all(
        Array.from({ length: 20 }, (_, writer) =>
          stores[writer % 2]?.put("a", `${writer}`, { ifMatch: etag }),
        ),
      );
      expect(replaced.filter(result => result?.written)).toHaveLength(1);
    });

    it("sends the whole body again after a 503 in the middle of it (aws-sdk-js-v3#5479 and #6770, case B46)", async () => {
      const store = await openBad("b46");
      const body = pattern(3 * MIB, 1);
      proxy.plan(on("PUT", "b46/a"), { kind: "refuse", status: 503, code: "SlowDown", afterShare: 0.5 });
      expect(await store.put("a", body, NEW)).toMatchObject({ written: true });
      const requests = seen("PUT", "b46/a");
      expect(requests).toHaveLength(2);
      expect(requests[0]?.bodyBytes).toBeLessThan(body.length);
      expect(requests[1]?.bodyBytes).toBe(body.length);
      expect(Buffer.compare((await store.get("a"))?.body ?? Buffer.alloc(0), body)).toBe(0);

      const large = pattern(11 * MIB, 2);
      proxy.plan(
        on("PUT", "partNumber=2"),
        { kind: "refuse", status: 503, code: "SlowDown", afterShare: 0.5 },
        { kind: "cut" },
      );
      expect(await store.put("large", large, NEW)).toMatchObject({ written: true });
      expect(Buffer.compare((await store.get("large"))?.body ?? Buffer.alloc(0), large)).toBe(0);
    });

    it("frees the sockets of bodies that nobody reads to the end (aws-sdk-js-v3#7416, case B47)", async () => {
      const store = await openBad("b47");
      await store.put("a", pattern(MIB, 1), NEW);
      for (let reads = 0; reads < 100; reads++) for await (const _ of store.stream("a")) break;
      await Promise.all(
        Array.from({ length: 100 }, async () => {
          for await (const _ of store.stream("a")) break;
        }),
      );
      expect((await store.get("a"))?.sizeBytes).toBe(MIB);
      // Sockets that are kept for the next request, not one for each stream that was left.
      expect(await proxy.openConnections()).toBeLessThanOrEqual(160);
    });

    it("refuses a stream as a body, before anything is sent (aws-sdk-js-v3#7048, case B49)", async () => {
      const store = await openBad("b49");
      const flowing = new Blob(["x"]).stream();
      // @ts-expect-error: the type says so already
      await expect(store.put("a", flowing, NEW)).rejects.toMatchObject({ name: "InvariantError" });
      expect(seen("PUT", "b49/a")).toEqual([]);
    });

    it("adds no checksums off AWS (aws-sdk-js-v3#6810, case B50)", async () => {
      const store = await openBad("b50");
      await store.put("a", "text", NEW);
      await store.put("large", pattern(6 * MIB, 1), NEW);
      await store.get("a");
      const names = [...seen("PUT", "b50/"), ...seen("POST", "b50/"), ...seen("GET", "b50/")].flatMap(
        ({ headers }) => Object.entries(headers),
      );
      expect(names.length).toBeGreaterThan(10);
      for (const [name, value] of names) {
        expect(name).not.toMatch(/checksum|^x-amz-trailer$/);
        expect(`${name}: ${value}`).not.toMatch(/aws-chunked/);
      }
    });

    it.each(["cut", "internal-error"] as const)(
      "does not call a write lost whose first answer was (%s)",
      async as => {
        const name = `landed-${as}`;
        const store = await openBad(name);
        proxy.plan(on("PUT", `${name}/a`), { kind: "lose-answer", as });
        const created = await store.put("a", "1", NEW);
        expect(created).toMatchObject({ written: true });
        expect(created).toMatchObject({ etag: (await store.get("a"))?.etag });
        expect(seen("PUT", `${name}/a`)).toHaveLength(2);

        proxy.plan(on("PUT", `${name}/a`), { kind: "lose-answer", as });
        const replaced = await store.put("a", "2", { ifMatch: created.written ? created.etag : "" });
        expect(replaced).toMatchObject({ written: true, etag: (await store.get("a"))?.etag });

        proxy.plan(on("POST", "uploadId"), { kind: "lose-answer", as });
        const large = await store.put("large", pattern(6 * MIB, 1), NEW);
        expect(large).toMatchObject({ written: true, etag: (await store.get("large"))?.etag });
      },
    );

    it("calls a write lost whose first try did not arrive and whose key another writer took, with equal bytes too", async () => {
      const store = await openBad("taken");
      await (await openGood("taken")).put("a", "same", NEW);
      proxy.plan(on("PUT", "taken/a"), { kind: "cut" });
      expect(await store.put("a", "same", NEW)).toEqual({ written: false });
      const etag = (await store.get("a"))?.etag ?? "";
      await (await openGood("taken")).put("a", "other", { ifMatch: etag });
      proxy.plan(on("PUT", "taken/a"), { kind: "cut" });
      expect(await store.put("a", "other", { ifMatch: etag })).toEqual({ written: false });
    });

    it("reads an object to the end over connections that are cut off or fall silent", async () => {
      const store = await openBad("broken");
      const body = pattern(4 * MIB, 5);
      await store.put("a", body, NEW);
      const faults = [
        { kind: "break-off", afterBytes: MIB, ending: "cut" },
        { kind: "break-off", afterBytes: 2 * MIB, ending: "silence" },
        { kind: "break-off", afterBytes: 10, ending: "cut" },
        { kind: "cut" },
      ] as const;
      proxy.plan(on("GET", "broken/a"), ...faults);
      expect(Buffer.compare((await store.get("a"))?.body ?? Buffer.alloc(0), body)).toBe(0);
      const ranges = seen("GET", "broken/a").map(({ headers }) => headers.range);
      const resumed = expect.stringMatching(/^bytes=[1-9]\d*-$/);
      expect(ranges).toEqual([undefined, resumed, resumed, resumed, resumed]);
      proxy.plan(on("GET", "broken/a"), faults[0], faults[2]);
      expect(Buffer.compare(Buffer.concat(await Array.fromAsync(store.stream("a"))), body)).toBe(0);
    });

    it("joins no two versions when an object is replaced while it is read", async () => {
      const store = await openBad("versions");
      const etag = await store.put("a", pattern(MIB, 1), NEW);
      proxy.plan(on("GET", "versions/a"), { kind: "break-off", afterBytes: 1_000, ending: "cut" });
      const reading = (async () => {
        for await (const _ of store.stream("a"))
          await (await openGood("versions")).put("a", pattern(MIB, 2), {
            ifMatch: etag.written ? etag.etag : "",
          });
      })();
      await expect(reading).rejects.toMatchObject({
        name: "StoreUnavailable",
        retryable: true,
        message: expect.stringContaining("replaced while it was read"),
      });
    });

    it("waits for a slow answer, and asks again where none comes", async () => {
      const store = await openBad("slow");
      proxy.plan(on("PUT", "slow/a"), { kind: "delay", ms: 250 });
      expect(await store.put("a", "1", NEW)).toMatchObject({ written: true });
      expect(seen("PUT", "slow/a")).toHaveLength(1);
      for (const method of ["GET", "HEAD", "PUT"]) proxy.plan(on(method, "slow/a"), { kind: "silence" });
      const answers = [textOf(store, "a"), store.head("a"), store.put("a", "2", NEW)];
      expect(await Promise.all(answers)).toEqual(["1", { key: "a", sizeBytes: 1 }, { written: false }]);
      await store.delete("a");
      expect(await store.head("a")).toBeUndefined();
    });

    it("lists on where a page failed", async () => {
      const store = await openBad("pages");
      for (const key of ["a/1", "b/1", "c"]) await store.put(key, "1", NEW);
      const listing = (request: SeenRequest) =>
        request.method === "GET" && request.url.includes("prefix=pages");
      proxy.plan(listing, { kind: "refuse", status: 500, code: "InternalError" }, { kind: "cut" });
      expect((await Array.fromAsync(store.list(""))).map(({ key }) => key)).toEqual(["a/1", "b/1", "c"]);
      proxy.plan(listing, { kind: "refuse", status: 503, code: "SlowDown" });
      expect(await Array.fromAsync(store.folders(""))).toEqual(["a", "b"]);
    });

    it("gives up in the end, as a Failure that says who did not answer", async () => {
      const store = await openBad("busy");
      const busy = Array.from(
        { length: OPTIONS.patience.tries },
        () => ({ kind: "refuse", status: 503, code: "SlowDown" }) as const,
      );
      proxy.plan(on("PUT", "busy/a"), ...busy);
      await expect(store.put("a", "1", NEW)).rejects.toMatchObject({
        name: "StoreUnavailable",
        retryable: true,
        message: expect.stringMatching(
          /s3:\/\/bucket.*busy\/a: put failed: http.* asks for fewer requests \(503 SlowDown/,
        ),
      });
      expect(seen("PUT", "busy/a")).toHaveLength(OPTIONS.patience.tries);
      proxy.plan(on("PUT", "busy/b"), { kind: "refuse", status: 501, code: "NotImplemented" });
      await expect(store.put("b", "1", NEW)).rejects.toMatchObject({
        name: "StoreUnavailable",
        retryable: false,
      });
      expect(seen("PUT", "busy/b")).toHaveLength(1);
      await expect(openS3Store(urlAt("http://127.0.0.1:9"), OPTIONS)).rejects.toMatchObject({
        name: "StoreUnavailable",
        retryable: true,
        message: expect.stringContaining("http://127.0.0.1:9 does not answer (ECONNREFUSED"),
      });
    });

    it("writes a large object in parts, under the same conditions", async () => {
      const stores = [await openBad("large"), await openBad("large")];
      const [store] = stores;
      const bodies = [pattern(11 * MIB + 1, 1), pattern(11 * MIB + 2, 2)];
      // SeaweedFS 4.48 lets two completions win that overlap, which AWS does not; here one comes after the other.
      proxy.plan(on("POST", "uploadId"), undefined, { kind: "delay", ms: 700 });
      const results = await Promise.all(bodies.map((body, index) => stores[index]?.put("a", body, NEW)));
      const winner = results.findIndex(result => result?.written);
      expect(results.map(result => result?.written)).toEqual([winner === 0, winner === 1]);
      const stored = await store?.get("a");
      expect(Buffer.compare(stored?.body ?? Buffer.alloc(0), bodies[winner] ?? Buffer.alloc(1))).toBe(0);
      expect(stored?.etag).toMatch(/-3"?$/);
      const etag = stored?.etag ?? "";
      expect(await store?.put("a", pattern(6 * MIB, 9), { ifMatch: "another" })).toEqual({ written: false });
      const replaced = await store?.put("a", pattern(6 * MIB, 9), { ifMatch: etag });
      expect(replaced).toMatchObject({ written: true, etag: (await store?.get("a"))?.etag });
      expect(await store?.put("a", pattern(6 * MIB, 8), { ifMatch: etag })).toEqual({ written: false });
    });

    it("leaves no parts behind when an upload fails", async () => {
      const store = await openBad("parts");
      proxy.plan(on("PUT", "partNumber=2"), { kind: "refuse", status: 403, code: "AccessDenied" });
      await expect(store.put("large", pattern(11 * MIB, 1), NEW)).rejects.toMatchObject({
        name: "InputError",
      });
      expect(seen("DELETE", "parts/large")).toHaveLength(1);
      expect(await store.head("large")).toBeUndefined();
    });

    it("sends no large object to a key that is taken", async () => {
      const store = await openBad("again");
      await store.put("large", pattern(6 * MIB, 1), NEW);
      const before = seen("PUT", "again/large").length;
      expect(await store.put("large", pattern(6 * MIB, 1), NEW)).toEqual({ written: false });
      expect(seen("PUT", "again/large")).toHaveLength(before);
    });

    it("names the region of a bucket that lies elsewhere", async () => {
      const elsewhere = {
        ...({ kind: "refuse", status: 301, code: "PermanentRedirect" } as const),
        headers: { "x-amz-bucket-region": "eu-west-1" },
      };
      proxy.plan(on("GET", "prefix=region"), elsewhere);
      await expect(openBad("region")).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringContaining("in its own region, eu-west-1"),
      });
    });
  });

  describe("that cannot be opened", () => {
    it("says that there is no such bucket", async () => {
      const url = `s3://no-such-bucket/x?endpoint=${server.endpoint}`;
      await expect(openStore(url)).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringMatching(
          /^no such bucket: .*expected the bucket no-such-bucket at http:.*\n {2}fix: /,
        ),
      });
    });

    it("says that there are no credentials", async () => {
      setEnvironment({
        ...{
          AWS_ACCESS_KEY_ID: undefined,
          AWS_SECRET_ACCESS_KEY: undefined,
          AWS_EC2_METADATA_DISABLED: "true",
        },
        ...{ AWS_SHARED_CREDENTIALS_FILE: "/dev/null", AWS_CONFIG_FILE: "/dev/null" },
      });
      await expect(openS3Store(urlAt(server.endpoint), OPTIONS)).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringMatching(/^no credentials for S3: .*\n {2}fix: set AWS_PROFILE/),
      });
    });

    it.each([
      ["an unknown key", { AWS_ACCESS_KEY_ID: "nobody" }],
      ["a wrong secret", { AWS_SECRET_ACCESS_KEY: "wrong" }],
    ])("says that credentials are refused: %s", async (_, changes) => {
      setEnvironment(changes);
      await expect(openS3Store(urlAt(server.endpoint), OPTIONS)).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringContaining("credentials for S3 are refused"),
      });
    });

    it("says that writing is denied, where only reading is allowed", async () => {
      const url = urlAt(server.endpoint);
      await (await openS3Store(url)).put("a", "1", NEW);
      setEnvironment({ AWS_ACCESS_KEY_ID: "reader", AWS_SECRET_ACCESS_KEY: "reader" });
      const store = await openS3Store(url, OPTIONS);
      expect(await textOf(store, "a")).toBe("1");
      await expect(store.put("b", "1", NEW)).rejects.toMatchObject({
        name: "InputError",
        message: expect.stringMatching(
          /^access to the store is denied: .*\/b: expected to be allowed to put/,
        ),
      });
    });
  });
});

function setEnvironment(changes: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(changes)) {
    const before = process.env[name];
    onTestFinished(() => setVariable(name, before));
    setVariable(name, value);
  }
}

function setVariable(name: string, value: string | undefined): void {
  if (value === undefined) delete process.env[name];
  else process.env[name] = value;
}

/** Bytes that differ from seed to seed and from place to place. */
function pattern(sizeBytes: number, seed: number): Buffer {
  const bytes = Buffer.allocUnsafe(sizeBytes);
  for (let at = 0; at < sizeBytes; at++) bytes[at] = (at * 31 + (at >> 8) * 7 + seed * 101) & 255;
  return bytes;
}

async function textOf(
  store: Awaited<ReturnType<typeof openStore>>,
  key: string,
): Promise<string | undefined> {
  const found = await store.get(key);
  return found && Buffer.from(found.body).toString();
}
