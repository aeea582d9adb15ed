// Frames of the daemon's protocol: the length of a JSON header and of the bytes behind it (4 bytes each, big-endian), the
// header, the bytes. The same over a unix socket, standard streams and TLS.

/** A command may be 1 MiB long, and as JSON each of its characters up to six bytes. */
export const HEADER_LIMIT_BYTES = 16 << 20;
/** What is larger than this goes in several frames. */
export const BODY_LIMIT_BYTES = 64 << 20;

const PREFIX_BYTES = 8;

export interface Frame {
  readonly header: unknown;
  readonly body: Uint8Array;
}

export function encodeFrame(header: unknown, body: Uint8Array = new Uint8Array(0)): readonly Uint8Array[] {
  const text = Buffer.from(JSON.stringify(header));
  if (text.length > HEADER_LIMIT_BYTES || body.length > BODY_LIMIT_BYTES)
    throw new RangeError(`a frame of ${text.length} + ${body.length} bytes is too large`);
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(text.length, 0);
  prefix.writeUInt32BE(body.length, 4);
  return body.length === 0 ? [Buffer.concat([prefix, text])] : [Buffer.concat([prefix, text]), body];
}

/** Puts frames together from pieces of any size. */
export class FrameReader {
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  /** Bytes that the next frame needs, as far as is known yet. */
  #needed = PREFIX_BYTES;

  /**
   * @returns the frames that are complete now
   * @throws RangeError for a length beyond the limits, SyntaxError for a header that is no JSON: the other side speaks
   * another language, and nothing after it can be understood
   */
  push(piece: Uint8Array): readonly Frame[] {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    const frames: Frame[] = [];
    while (this.#bytes >= this.#needed) {
      const bytes =
        this.#pieces.length === 1 && this.#pieces[0] ? this.#pieces[0] : Buffer.concat(this.#pieces);
      const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const headerBytes = view.readUInt32BE(0);
      const bodyBytes = view.readUInt32BE(4);
      if (headerBytes > HEADER_LIMIT_BYTES || bodyBytes > BODY_LIMIT_BYTES)
        throw new RangeError(`a frame of ${headerBytes} + ${bodyBytes} bytes is too large`);
      const bodyAt = PREFIX_BYTES + headerBytes;
      const end = bodyAt + bodyBytes;
      const isComplete = view.length >= end;
      if (isComplete) {
        const header: unknown = JSON.parse(view.toString("utf8", PREFIX_BYTES, bodyAt));
        // Its own bytes, because the piece may hold much more and would be kept with it.
        frames.push({ header, body: new Uint8Array(view.subarray(bodyAt, end)) });
      }
      const rest = isComplete ? view.subarray(end) : view;
      this.#pieces = rest.length === 0 ? [] : [rest];
      this.#bytes = rest.length;
      this.#needed = isComplete ? PREFIX_BYTES : end;
    }
    return frames;
  }
}
