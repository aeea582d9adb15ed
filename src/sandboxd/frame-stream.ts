// A connection as frames. Until somebody listens, only the few words of a greeting are taken, one frame at a time: who
// has not proved who it is yet cannot make us keep anything.
import type { Duplex } from "node:stream";
import { encodeFrame, FRAME_LIMITS, type Frame, FrameReader } from "./frames.ts";

const GREETING_LIMITS = { headerBytes: 4096, bodyBytes: 0 };

export class FrameStream {
  /** Resolves when nothing will come any more. */
  readonly closed: Promise<void>;
  readonly #duplex: Duplex;
  readonly #reader = new FrameReader(GREETING_LIMITS);
  readonly #waiting: Frame[] = [];
  #wanted: ((frame: Frame | undefined) => void) | undefined;
  #listener: ((frame: Frame) => void) | undefined;
  #isClosed = false;
  #isGarbled = false;

  constructor(duplex: Duplex) {
    this.#duplex = duplex;
    this.closed = new Promise(resolve => {
      const end = (): void => {
        this.#isClosed = true;
        duplex.destroy();
        this.#wanted?.(undefined);
        resolve();
      };
      duplex.on("error", end).on("end", end).on("close", end);
    });
    duplex.on("data", (piece: Buffer) => this.#receive(piece));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** It was closed because the other side sent what is no frame. */
  get isGarbled(): boolean {
    return this.#isGarbled;
  }

  /** A frame sent into a closed connection is lost, as it would be a moment before the end. */
  send(header: unknown, body?: Uint8Array): void {
    if (this.#isClosed) return;
    const parts = encodeFrame(header, body);
    if (parts.length === 1) {
      this.#duplex.write(parts[0]);
      return;
    }
    this.#duplex.cork();
    for (const part of parts) this.#duplex.write(part);
    this.#duplex.uncork();
  }

  /** @returns undefined when the connection has ended */
  async next(): Promise<Frame | undefined> {
    const waiting = this.#waiting.shift();
    if (waiting !== undefined || this.#isClosed) return waiting;
    this.#duplex.resume();
    return new Promise(resolve => {
      this.#wanted = frame => {
        this.#wanted = undefined;
        resolve(frame);
      };
    });
  }

  /** From now on every frame goes to it. */
  listen(listener: (frame: Frame) => void): void {
    this.#listener = listener;
    this.#reader.limits = FRAME_LIMITS;
    for (const frame of this.#waiting.splice(0)) listener(frame);
    this.#duplex.resume();
  }

  close(): void {
    this.#duplex.destroy();
  }

  #receive(piece: Buffer): void {
    let frames: readonly Frame[];
    try {
      frames = this.#reader.push(piece);
    } catch {
      this.#isGarbled = true;
      this.close(); // the other side speaks another language
      return;
    }
    for (const frame of frames) {
      if (this.#listener !== undefined) this.#listener(frame);
      else if (this.#wanted !== undefined) this.#wanted(frame);
      else {
        this.#waiting.push(frame);
        this.#duplex.pause();
      }
    }
  }
}
