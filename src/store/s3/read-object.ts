// Reading one object from start to end over as many connections as that takes: when one is cut off, the next goes on
// where it ended and asks for the same version.
import type { Readable } from "node:stream";
import { GetObjectCommand } from "@aws-sdk/client-s3";
import { Failure, formatErrorText } from "../../failure/errors.ts";
import type { S3Connection } from "./s3-client.ts";
import { bodyCutOff, isMissing, isReplaced, isTransient } from "./s3-errors.ts";

export interface OpenObject {
  readonly sizeBytes: number;
  readonly etag: string;
  /** Has to be read to its end or destroyed, else its socket is never free again (aws-sdk-js-v3#7416). */
  readonly body: Readable;
}

/** @returns undefined when there is none */
export function openObject(
  connection: S3Connection,
  key: string,
  from?: { readonly start: number; readonly etag: string },
): Promise<OpenObject | undefined> {
  const command = new GetObjectCommand({
    Bucket: connection.location.bucket,
    Key: key,
    ...(from === undefined ? {} : { Range: `bytes=${from.start}-`, IfMatch: from.etag }),
  });
  return connection.withRetries(async () => {
    try {
      const { Body, ContentLength, ETag } = await connection.once(abortSignal =>
        connection.client.send(command, { abortSignal }),
      );
      return { sizeBytes: ContentLength ?? 0, etag: ETag ?? "", body: Body as Readable };
    } catch (error) {
      if (from === undefined && isMissing(error)) return undefined;
      throw error;
    }
  });
}

/**
 * The bytes of an opened object, in order.
 *
 * @throws Failure StoreUnavailable when another version has its place before the end was read
 */
export async function* readObject(
  connection: S3Connection,
  key: string,
  first: OpenObject,
): AsyncGenerator<Uint8Array> {
  let opened = first;
  let at = 0;
  for (let failures = 0; ; ) {
    try {
      for await (const chunk of opened.body as AsyncIterable<Uint8Array>) {
        at += chunk.length;
        failures = 0;
        yield chunk;
      }
      if (at === first.sizeBytes) return;
      throw bodyCutOff(at, first.sizeBytes);
    } catch (error) {
      if (!isTransient(error) || ++failures === connection.patience.tries) throw error;
    } finally {
      opened.body.destroy();
    }
    // All is there, and only the end of the connection was not as it should be.
    if (at === first.sizeBytes) return;
    await connection.pause(failures);
    opened = await reopen(connection, key, { start: at, etag: first.etag });
  }
}

async function reopen(
  connection: S3Connection,
  key: string,
  from: { readonly start: number; readonly etag: string },
): Promise<OpenObject> {
  try {
    const opened = await openObject(connection, key, from);
    if (opened !== undefined) return opened;
  } catch (error) {
    if (!isReplaced(error)) throw error;
  }
  const text = formatErrorText({
    what: "store unavailable",
    where: key,
    expected: `expected one version from start to end, but it was replaced while it was read (at byte ${from.start})`,
  });
  throw new Failure("StoreUnavailable", text, { retryable: true });
}
