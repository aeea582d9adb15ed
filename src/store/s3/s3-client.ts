// A connection to one bucket: requests that end, one way or the other, in bounded time and number, and are made again
// as a whole when that can help. The SDK itself makes every request once; a retry that it made in secret could turn
// our own write into "another writer was first".
import { setTimeout as sleep } from "node:timers/promises";
import { S3Client } from "@aws-sdk/client-s3";
import { RequestSlots } from "./request-slots.ts";
import { attributeS3Error, deadlinePassed, isTransient } from "./s3-errors.ts";
import { assertEndpoint, type S3Location } from "./s3-url.ts";

/** How patient a connection is. The defaults are for AWS; tests are in a hurry. */
export interface S3Patience {
  /** Of one request in all; each pause is drawn from 0 to a length that doubles up to the longest. */
  readonly tries: number;
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** How long a connection may take to open, and how long it may be silent. */
  readonly connectMs: number;
  readonly silenceMs: number;
  /** Time of a request besides that of its bytes, which may come this slowly. */
  readonly requestMs: number;
  readonly bytesPerMs: number;
}

const PATIENCE: S3Patience = {
  tries: 8,
  firstPauseMs: 100,
  longestPauseMs: 10_000,
  connectMs: 10_000,
  silenceMs: 30_000,
  requestMs: 60_000,
  bytesPerMs: 200,
};

/** Requests under way at once, and sockets: the rest is for streams, which stay open while they are read. */
const REQUESTS_AT_ONCE = 48;
const WHOLE_READS_AT_ONCE = 48;
const MAX_SOCKETS = 160;

export class S3Connection {
  readonly client: S3Client;
  /** With the endpoint, wherever it was set. */
  readonly location: S3Location;
  readonly patience: S3Patience;
  /** For reads into memory, whose sockets stay busy after the request was answered. */
  readonly wholeReads = new RequestSlots(WHOLE_READS_AT_ONCE);
  readonly #slots = new RequestSlots(REQUESTS_AT_ONCE);

  /** @throws InputError for an endpoint that is no URL */
  constructor(location: S3Location, patience: Partial<S3Patience> = {}) {
    this.patience = { ...PATIENCE, ...patience };
    const endpoint = location.endpoint ?? endpointOfEnvironment();
    this.location = endpoint === undefined ? location : { ...location, endpoint };
    this.client = new S3Client(this.#config());
  }

  /** Off AWS, servers are addressed by path and may not know the checksums that the SDK adds (aws-sdk-js-v3#6810). */
  get isAws(): boolean {
    return this.location.endpoint === undefined;
  }

  /** Runs an action of a store. @throws InputError, Failure StoreUnavailable; what is neither comes as it is */
  async attributed<Result>(action: string, where: string, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw attributeS3Error(error, action, where, this.location);
    }
  }

  /** Tries again while that can help. @param again which errors of S3 a new try may not meet */
  async withRetries<Result>(
    action: () => Promise<Result>,
    again: (error: unknown) => boolean = isTransient,
  ): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await action();
      } catch (error) {
        if (!again(error) || tries >= this.patience.tries) throw error;
        await this.pause(tries);
      }
    }
  }

  /** @param failures so far, from 1 */
  async pause(failures: number): Promise<void> {
    const { firstPauseMs, longestPauseMs } = this.patience;
    // From the global generator: many writers that failed together must not come back together.
    await sleep(Math.random() * Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1)));
  }

  /**
   * One try of one request, in a slot and in bounded time.
   *
   * @param send makes the request, which `signal` ends when its time is over
   * @param sizeBytes of what is sent
   * @throws errors of the SDK as they are
   */
  once<Result>(send: (signal: AbortSignal) => Promise<Result>, sizeBytes = 0): Promise<Result> {
    const deadlineMs = Math.ceil(this.patience.requestMs + sizeBytes / this.patience.bytesPerMs);
    return this.#slots.run(async () => {
      const ending = new AbortController();
      const timer = setTimeout(() => ending.abort(), deadlineMs);
      try {
        return await send(ending.signal);
      } catch (error) {
        throw ending.signal.aborted ? deadlinePassed(deadlineMs) : error;
      } finally {
        clearTimeout(timer);
      }
    });
  }

  #config() {
    const { connectMs, silenceMs } = this.patience;
    const { region, endpoint } = this.location;
    const agent = { keepAlive: true, maxSockets: MAX_SOCKETS };
    const offAws = {
      endpoint,
      forcePathStyle: true,
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
    } as const;
    return {
      maxAttempts: 1,
      requestHandler: {
        connectionTimeout: connectMs,
        socketTimeout: silenceMs,
        httpAgent: agent,
        httpsAgent: agent,
      },
      ...(region === undefined ? this.#regionOffAws() : { region }),
      ...(this.isAws ? {} : offAws),
    };
  }

  /** Servers that are not AWS take any region; AWS has no default. */
  #regionOffAws(): { readonly region?: string } {
    return this.isAws || process.env.AWS_REGION !== undefined ? {} : { region: "us-east-1" };
  }
}

function endpointOfEnvironment(): string | undefined {
  for (const name of ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]) {
    const endpoint = process.env[name];
    if (endpoint === undefined || endpoint === "") continue;
    assertEndpoint(endpoint, name);
    return endpoint;
  }
  return undefined;
}
