// Frames of the daemon's protocol: the length of a JSON header and of the bytes behind it (4 bytes each, big-endian), the
// header, the bytes. The same over a unix socket, standard streams and TLS.

/** A command may be 1 MiB long, and as JSON each of its characters up to six bytes. */
export const HEADER_LIMIT_BYTES = 16 << 20;
/** Larger bodies go in several frames. */
export const BODY_LIMIT_BYTES = 64 << 20;

const PREFIX_BYTES = 8;

/** The most that the other side may send in one frame. */
export interface FrameLimits {
  readonly headerBytes: number;
  readonly bodyBytes: number;
}

export const FRAME_LIMITS: FrameLimits = { headerBytes: HEADER_LIMIT_BYTES, bodyBytes: BODY_LIMIT_BYTES };

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

/** Puts frames together from pieces of any size. Keeps no more than the one frame that is arriving. */
export class FrameReader {
  /** Limits of frames whose lengths have not arrived yet. */
  limits: FrameLimits;
  /** The lengths, and once they are known all of the frame, of which so much is there. */
  #frame = Buffer.allocUnsafeSlow(PREFIX_BYTES);
  #filledBytes = 0;

  constructor(limits: FrameLimits = FRAME_LIMITS) {
    this.limits = limits;
  }

  /**
   * @returns the frames that are complete now
   * @throws RangeError for a length beyond the limits, SyntaxError for a header that is no JSON: the other side speaks
   * another language, and nothing after it can be understood
   */
  push(piece: Uint8Array): readonly Frame[] {
    const frames: Frame[] = [];
    for (let at = 0; ; ) {
      const taken = piece.subarray(at, at + this.#frame.length - this.#filledBytes);
      this.#frame.set(taken, this.#filledBytes);
      this.#filledBytes += taken.length;
      at += taken.length;
      if (this.#filledBytes < this.#frame.length) return frames;
      const bodyAt = PREFIX_BYTES + this.#frame.readUInt32BE(0);
      const end = bodyAt + this.#frame.readUInt32BE(4);
      if (this.#frame.length < end) this.#makeRoom(bodyAt, end);
      else {
        const header: unknown = JSON.parse(this.#frame.toString("utf8", PREFIX_BYTES, bodyAt));
        frames.push({ header, body: new Uint8Array(this.#frame.buffer, bodyAt, end - bodyAt) });
        this.#frame = Buffer.allocUnsafeSlow(PREFIX_BYTES);
        this.#filledBytes = 0;
      }
    }
  }

  #makeRoom(bodyAt: number, end: number): void {
    const [headerBytes, bodyBytes] = [bodyAt - PREFIX_BYTES, end - bodyAt];
    if (headerBytes > this.limits.headerBytes || bodyBytes > this.limits.bodyBytes)
      throw new RangeError(`a frame of ${headerBytes} + ${bodyBytes} bytes is too large`);
    // Of its own, since a body may be kept; and as yet only promised by the machine, however much was announced.
    const frame = Buffer.allocUnsafeSlow(end);
    frame.set(this.#frame);
    this.#frame = frame;
  }
}
