// Writing one object under a condition, in one request or in parts. Every write carries an id of its own as metadata:
// when an answer was lost and the next try is told that the key is taken, the id says by whom.
import { randomUUID } from "node:crypto";
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { assertSize, type ByteSource, readWhole } from "../../files/content.ts";
import type { PutCondition, PutResult } from "../object-store.ts";
import type { S3Connection } from "./s3-client.ts";
import { isConflict, isLost, isMissing, isNoSuchUpload, isTransient } from "./s3-errors.ts";

/** Sizes of parts; the default is for AWS, which takes at least 5 MiB and at most 10,000 parts. */
export interface PartSizes {
  /** Larger objects are written in parts. */
  readonly wholeBytes: number;
  readonly partBytes: number;
}

const MAX_PARTS = 10_000;
const PARTS_AT_ONCE = 4;
const WRITE_ID = "t1-write";
const LOST: PutResult = { written: false };

/** One conditional write of one object. */
export class ObjectWrite {
  readonly #connection: S3Connection;
  readonly #target: { readonly Bucket: string; readonly Key: string };
  readonly #body: ByteSource;
  readonly #condition: PutCondition;
  readonly #id = randomUUID();
  /** A try ended without a clear answer, so that what stands there may be ours. */
  #mayHaveLanded = false;

  constructor(connection: S3Connection, key: string, body: ByteSource, condition: PutCondition) {
    this.#connection = connection;
    this.#target = { Bucket: connection.location.bucket, Key: key };
    this.#body = body;
    this.#condition = condition;
  }

  /** @throws errors of S3 as they are */
  async run({ wholeBytes, partBytes }: PartSizes): Promise<PutResult> {
    if (this.#body.sizeBytes <= wholeBytes) {
      const bytes = await readWhole(this.#body);
      return this.#connection.withRetries(
        () => this.#settled(() => this.#putWhole(bytes)),
        error => isTransient(error) || isConflict(error),
      );
    }
    // Most lost writes are a stage that runs again; then nothing large needs to be sent.
    if ("ifNoneMatch" in this.#condition && (await this.#head()) !== undefined) return LOST;
    // Its requests have retries of their own; only a conflict ends an upload, as S3 has it.
    return this.#connection.withRetries(() => this.#settled(() => this.#putParts(partBytes)), isConflict);
  }

  /** @returns what a try came to, also where only a look at what stands there can tell */
  async #settled(write: () => Promise<string>): Promise<PutResult> {
    try {
      return { written: true, etag: await write() };
    } catch (error) {
      this.#isUnclear(error);
      const isGone = isLost(error, this.#condition) || (this.#mayHaveLanded && isNoSuchUpload(error));
      if (!isGone) throw error;
      const standing = this.#mayHaveLanded ? await this.#head() : undefined;
      return standing?.writeId === this.#id ? { written: true, etag: standing.etag } : LOST;
    }
  }

  async #putWhole(bytes: Uint8Array): Promise<string> {
    const command = new PutObjectCommand({
      ...this.#target,
      ...this.#conditionHeaders(),
      Metadata: { [WRITE_ID]: this.#id },
      Body: bytes,
      ContentLength: bytes.length,
    });
    const { ETag } = await this.#once(
      abortSignal => this.#connection.client.send(command, { abortSignal }),
      bytes.length,
    );
    return ETag ?? "";
  }

  async #putParts(partBytes: number): Promise<string> {
    const { client, isAws } = this.#connection;
    const create = new CreateMultipartUploadCommand({
      ...this.#target,
      Metadata: { [WRITE_ID]: this.#id },
      ...(isAws ? { ChecksumAlgorithm: "CRC32" } : {}),
    });
    const { UploadId } = await this.#connection.withRetries(() =>
      this.#once(abortSignal => client.send(create, { abortSignal })),
    );
    try {
      return await this.#complete(UploadId, await this.#uploadParts(UploadId, partBytes));
    } catch (error) {
      // What cannot be aborted now is for the bucket's lifecycle rule; the first error is the one to tell.
      await this.#abort(UploadId).catch(() => {});
      throw error;
    }
  }

  async #uploadParts(UploadId: string | undefined, partBytes: number): Promise<CompletedPart[]> {
    const size = Math.max(partBytes, Math.ceil(this.#body.sizeBytes / MAX_PARTS));
    const done: CompletedPart[] = [];
    const parts = inParts(this.#body, size);
    const upload = async ({ index, Body }: Part): Promise<void> => {
      const command = new UploadPartCommand({ ...this.#target, UploadId, PartNumber: index + 1, Body });
      const { ETag, ChecksumCRC32 } = await this.#connection.withRetries(() =>
        this.#once(abortSignal => this.#connection.client.send(command, { abortSignal }), Body.length),
      );
      done[index] = {
        ETag,
        PartNumber: index + 1,
        ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }),
      };
    };
    const work = async (): Promise<void> => {
      for (let next = await parts.next(); !next.done; next = await parts.next()) await upload(next.value);
    };
    try {
      await Promise.all(Array.from({ length: PARTS_AT_ONCE }, work));
    } finally {
      await parts.return(undefined);
    }
    return done;
  }

  #complete(UploadId: string | undefined, parts: readonly CompletedPart[]): Promise<string> {
    const command = new CompleteMultipartUploadCommand({
      ...this.#target,
      ...this.#conditionHeaders(),
      UploadId,
      MultipartUpload: { Parts: [...parts] },
    });
    return this.#connection.withRetries(async () => {
      const { ETag } = await this.#once(
        abortSignal => this.#connection.client.send(command, { abortSignal }),
        this.#body.sizeBytes,
      );
      return ETag ?? "";
    }, this.#isUnclear);
  }

  #abort(UploadId: string | undefined): Promise<unknown> {
    const command = new AbortMultipartUploadCommand({ ...this.#target, UploadId });
    return this.#once(abortSignal => this.#connection.client.send(command, { abortSignal }));
  }

  async #head(): Promise<{ readonly etag: string; readonly writeId: string | undefined } | undefined> {
    try {
      const { ETag, Metadata } = await this.#connection.withRetries(() =>
        this.#once(abortSignal =>
          this.#connection.client.send(new HeadObjectCommand(this.#target), { abortSignal }),
        ),
      );
      return { etag: ETag ?? "", writeId: Metadata?.[WRITE_ID] };
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  readonly #isUnclear = (error: unknown): boolean => {
    const isUnclear = isTransient(error);
    this.#mayHaveLanded ||= isUnclear;
    return isUnclear;
  };

  #conditionHeaders() {
    return "ifNoneMatch" in this.#condition ? { IfNoneMatch: "*" } : { IfMatch: this.#condition.ifMatch };
  }

  #once<Result>(send: (signal: AbortSignal) => Promise<Result>, sizeBytes = 0): Promise<Result> {
    return this.#connection.once(send, sizeBytes);
  }
}

interface Part {
  readonly index: number;
  readonly Body: Uint8Array;
}

/** Content in parts of `size` bytes, each in memory as a whole, because a part may have to be sent again. */
async function* inParts(content: ByteSource, size: number): AsyncGenerator<Part, undefined> {
  let total = 0;
  let index = 0;
  let part: Uint8Array | undefined;
  let filled = 0;
  for await (const piece of content.pieces()) {
    for (let start = 0; start < piece.length; ) {
      part ??= new Uint8Array(Math.min(size, content.sizeBytes - total));
      const bytes = piece.subarray(start, start + part.length - filled);
      assertSize(content.sizeBytes, Math.max(content.sizeBytes, total + bytes.length));
      part.set(bytes, filled);
      start += bytes.length;
      filled += bytes.length;
      total += bytes.length;
      if (filled < part.length) continue;
      yield { index: index++, Body: part };
      part = undefined;
      filled = 0;
    }
  }
  assertSize(content.sizeBytes, total);
}
