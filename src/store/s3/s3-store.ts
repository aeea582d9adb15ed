// A store that is a bucket, or a prefix of one: the object of key `a/b` lies at `prefix/a/b`. What must always hold
// comes from S3: a write is whole or not there, reads see the last write, and conditional requests let exactly one
// writer win. What is left to do here: requests that fail are made again, and a write whose answer was lost is told
// from one that another writer was ahead of.
import {
  DeleteObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
} from "@aws-sdk/client-s3";
import { InputError } from "../../failure/errors.ts";
import { type Content, toSource } from "../../files/content.ts";
import { assertKey, assertPrefix } from "../object-key.ts";
import type { ObjectHead, ObjectStore, PutCondition, PutResult, StoredObject } from "../object-store.ts";
import { type OpenObject, openObject, readObject } from "./read-object.ts";
import { S3Connection, type S3Patience } from "./s3-client.ts";
import { attributeS3Error, isMissing } from "./s3-errors.ts";
import { formatS3Url, parseS3Url } from "./s3-url.ts";
import { ObjectWrite, type PartSizes } from "./write-object.ts";

export interface S3StoreOptions {
  readonly patience?: Partial<S3Patience>;
  readonly parts?: PartSizes;
}

const PARTS: PartSizes = { wholeBytes: 64 * 2 ** 20, partBytes: 32 * 2 ** 20 };

/**
 * Opens the store at `s3://bucket/prefix`, with `?region=…&endpoint=…` where the environment does not say them. One
 * request proves that the bucket is there and may be listed.
 *
 * @throws InputError for a URL that cannot be, no bucket, no credentials, no permission
 * @throws Failure StoreUnavailable when S3 does not answer
 */
export async function openS3Store(url: string, options: S3StoreOptions = {}): Promise<ObjectStore> {
  const location = parseS3Url(url);
  const connection = new S3Connection(location, options.patience);
  const store = new S3Store(formatS3Url(location), connection, options.parts ?? PARTS);
  await store.prepare();
  return store;
}

class S3Store implements ObjectStore {
  readonly url: string;
  readonly #connection: S3Connection;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #parts: PartSizes;

  constructor(url: string, connection: S3Connection, parts: PartSizes) {
    this.url = url;
    this.#connection = connection;
    this.#bucket = connection.location.bucket;
    this.#prefix = connection.location.prefix;
    this.#parts = parts;
  }

  async prepare(): Promise<void> {
    await this.#connection.attributed("open", this.url, () => this.#connection.client.config.credentials());
    await this.#listPage("open", this.#prefix, { MaxKeys: 1 });
  }

  async get(key: string): Promise<StoredObject | undefined> {
    const place = this.#placeOf(key);
    const read = async (): Promise<StoredObject | undefined> => {
      const opened = await openObject(this.#connection, this.#prefix + key);
      if (opened === undefined) return undefined;
      const { sizeBytes, etag } = opened;
      const body = Buffer.allocUnsafeSlow(sizeBytes); // not a piece of a shared pool: its buffer is the object alone
      let at = 0;
      for await (const chunk of readObject(this.#connection, this.#prefix + key, opened)) {
        body.set(chunk, at);
        at += chunk.length;
      }
      return { key, sizeBytes, body, etag };
    };
    return this.#connection.attributed("get", place, () => this.#connection.wholeReads.run(read));
  }

  async *stream(key: string): AsyncGenerator<Uint8Array> {
    const place = this.#placeOf(key);
    let opened: OpenObject | undefined;
    try {
      opened = await openObject(this.#connection, this.#prefix + key);
      if (opened === undefined)
        throw new InputError({ what: "no such object", where: key, expected: `expected it in ${this.url}` });
      yield* readObject(this.#connection, this.#prefix + key, opened);
    } catch (error) {
      throw attributeS3Error(error, "get", place, this.#connection.location);
    }
  }

  async head(key: string): Promise<ObjectHead | undefined> {
    const place = this.#placeOf(key);
    const command = new HeadObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key });
    return this.#request("head", place, async abortSignal => {
      try {
        const { ContentLength = 0 } = await this.#connection.client.send(command, { abortSignal });
        return { key, sizeBytes: ContentLength };
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    });
  }

  async put(key: string, body: Content, condition: PutCondition): Promise<PutResult> {
    const place = this.#placeOf(key);
    // The SDK only ever gets bytes in memory: a stream could be sent only once, and hashing one that already flows fails
    // (aws-sdk-js-v3#5479, #7048).
    const write = new ObjectWrite(this.#connection, this.#prefix + key, toSource(body), condition);
    return this.#connection.attributed("put", place, () => write.run(this.#parts));
  }

  async *list(prefix: string): AsyncGenerator<ObjectHead> {
    assertPrefix(prefix);
    const heads = this.#heads(prefix);
    // S3 lists in byte order. Servers that keep objects as files list folder by folder, and nothing they say tells.
    if (this.#connection.isAws) yield* heads;
    else yield* (await Array.fromAsync(heads)).sort((a, b) => compareBytes(a.key, b.key));
  }

  async *folders(prefix: string): AsyncGenerator<string> {
    assertPrefix(prefix);
    const names: string[] = [];
    for await (const { CommonPrefixes = [] } of this.#pages(prefix, { Delimiter: "/" }))
      for (const { Prefix = "" } of CommonPrefixes)
        names.push(Prefix.slice(this.#prefix.length + prefix.length, -1));
    // S3 orders them with their slashes, which puts "a-" before "a".
    yield* names.sort(compareBytes);
  }

  async delete(key: string): Promise<void> {
    const place = this.#placeOf(key);
    const command = new DeleteObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key });
    await this.#request("delete", place, abortSignal =>
      this.#connection.client.send(command, { abortSignal }),
    );
  }

  async *#heads(prefix: string): AsyncGenerator<ObjectHead> {
    for await (const { Contents = [] } of this.#pages(prefix))
      for (const { Key = "", Size = 0 } of Contents) {
        const key = Key.slice(this.#prefix.length);
        // Consoles mark empty folders by objects whose names end in a slash; they are no objects of a store.
        if (!key.endsWith("/") && key !== "") yield { key, sizeBytes: Size };
      }
  }

  async *#pages(
    prefix: string,
    more: { Delimiter?: string } = {},
  ): AsyncGenerator<ListObjectsV2CommandOutput> {
    let token: string | undefined;
    do {
      const page = await this.#listPage("list", this.#prefix + prefix, { ...more, ContinuationToken: token });
      yield page;
      token = page.IsTruncated ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  #listPage(
    action: string,
    prefix: string,
    more: { Delimiter?: string; MaxKeys?: number; ContinuationToken?: string },
  ): Promise<ListObjectsV2CommandOutput> {
    const command = new ListObjectsV2Command({ Bucket: this.#bucket, Prefix: prefix, ...more });
    return this.#request(action, `s3://${this.#bucket}/${prefix}`, abortSignal =>
      this.#connection.client.send(command, { abortSignal }),
    );
  }

  #request<Result>(
    action: string,
    where: string,
    send: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const connection = this.#connection;
    return connection.attributed(action, where, () => connection.withRetries(() => connection.once(send)));
  }

  /** Where a key lies, for messages. */
  #placeOf(key: string): string {
    assertKey(key);
    return `s3://${this.#bucket}/${this.#prefix}${key}`;
  }
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
