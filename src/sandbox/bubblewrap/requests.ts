// Requests to the processes of the spawner: how they are written, and the named pipe that brings them to an entry process.
import { closeSync, constants, openSync } from "node:fs";
import { Failure } from "../../failure/errors.ts";
import { writeSome } from "../run-process.ts";

/** From a full pipe until the next try: an entry process reads at once, unless its machine is busy. */
const FULL_MS = 1;

/** The request's length, and each field after its own, in 4 bytes, big-endian. Fields may hold any bytes. */
export function encodeRequest(fields: readonly string[]): Buffer {
  const lengths = fields.map(field => Buffer.byteLength(field));
  const total = lengths.reduce((sum, length) => sum + 4 + length, 0);
  const request = Buffer.allocUnsafe(4 + total);
  let at = request.writeUInt32BE(total, 0);
  for (const [index, field] of fields.entries()) {
    at = request.writeUInt32BE(lengths[index] ?? 0, at);
    at += request.write(field, at);
  }
  return request;
}

/** A list as fields: how many, and then each. */
export function listFields(list: readonly string[]): readonly string[] {
  return [`${list.length}`, ...list];
}

export class RequestPipe {
  readonly #fd: number;
  #waiting: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param path a named pipe
   * @throws Failure SandboxUnavailable when no descriptor is left
   */
  constructor(path: string) {
    try {
      // Also for reading: then it opens before the entry process has come, and an entry process that is gone is no error here.
      this.#fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    } catch (error) {
      const detail = `no pipe for requests: ${error}`;
      throw new Failure("SandboxUnavailable", detail, { retryable: true, cause: error });
    }
  }

  send(fields: readonly string[]): void {
    this.#waiting.push(encodeRequest(fields));
    if (this.#timer === undefined) this.#flush();
  }

  close(): void {
    clearTimeout(this.#timer);
    closeSync(this.#fd);
  }

  /** Not by a stream: those cost more than all the rest of a request. */
  #flush(): void {
    this.#timer = undefined;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const written = writeSome(this.#fd, next);
      if (written === next.length) this.#waiting.shift();
      else if (written > 0) this.#waiting[0] = next.subarray(written);
      else {
        this.#timer = setTimeout(() => this.#flush(), FULL_MS);
        return;
      }
    }
  }
}
