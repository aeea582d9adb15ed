// Our end of the pipe that a command prints into. Most commands are short and print little: what they print waits in the
// pipe until they end and is then read at once. Only one that prints much gets a stream, which costs more than the
// command itself.
import { closeSync, readSync } from "node:fs";
import { Socket } from "node:net";
import { hasCode } from "../files/file-errors.ts";
import type { OutputPace } from "./output-pace.ts";

/** As much as a pipe holds, unless it was told to hold more (pipe(7)). */
const PIPE_BYTES = 64 << 10;
/** Enough reads for the largest pipe (pipe(7), pipe-max-size), and one more that finds its end. */
const READS_OF_ALL = (1 << 20) / PIPE_BYTES + 1;
/** A command that printed this since the last look waits for a reader soon. */
const MUCH_BYTES = 8 << 10;
/** From a command's start to the first look; each look is this many times later than the one before, up to the last. */
const FIRST_LOOK_MS = 4;
const LATER = 4;
const LAST_LOOK_MS = 64;

/**
 * A background process may go on printing after its command has ended, into nothing. Without this a server that was
 * started with `&` would die of SIGPIPE at its next line; beyond these bytes it does.
 */
const BACKGROUND_BYTES = 16 << 20;

/** The pace counts each chunk as at least this much: handling one takes as long as reading so many bytes. */
const LEAST_CHUNK_BYTES = 16 << 10;

/** Chunks are handed out as views of it. */
const scratch = Buffer.allocUnsafeSlow(PIPE_BYTES);

/** Keeps no process alive: whoever waits for the command does. */
export class OutputReader {
  readonly #fd: number;
  /** Must copy what it keeps. */
  readonly #onChunk: (chunk: Uint8Array) => void;
  readonly #pace: OutputPace | undefined;
  #socket: Socket | undefined;
  /** Fires at the next look, or at the end of a pause. */
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param fd the reading end, which does not block; it belongs to the reader from now on
   * @param pace of what is read; as fast as it comes when not given
   */
  constructor(fd: number, onChunk: (chunk: Uint8Array) => void, pace?: OutputPace) {
    this.#fd = fd;
    this.#onChunk = onChunk;
    this.#pace = pace;
    this.#lookIn(FIRST_LOOK_MS);
  }

  /** The command has ended: takes what it has left in the pipe. What is printed from now on is nobody's. */
  finish(): void {
    clearTimeout(this.#timer);
    if (this.#socket?.destroyed) return;
    this.#socket?.removeAllListeners("data");
    // Chunks that arrived during a pause are older than what lies in the pipe.
    if (this.#socket?.isPaused()) for (const chunk of leftIn(this.#socket)) this.#onChunk(chunk);
    // More can only be a background process that goes on printing.
    const { isAtEnd } = this.#take(READS_OF_ALL);
    if (!isAtEnd) this.#letGo();
    else if (this.#socket === undefined) closeSync(this.#fd);
    else this.#socket.destroy();
  }

  #lookIn(delayMs: number): void {
    this.#timer = setTimeout(() => {
      // At its end a pipe is also before the command has opened it, so that says nothing yet.
      const { bytes } = this.#take(1);
      if (bytes >= MUCH_BYTES) this.#stream(this.#onChunk);
      else this.#lookIn(Math.min(delayMs * LATER, LAST_LOOK_MS));
    }, delayMs).unref();
  }

  #letGo(): void {
    let leftBytes = BACKGROUND_BYTES;
    this.#stream(chunk => {
      leftBytes -= chunk.length;
      if (leftBytes < 0) this.#socket?.destroy();
    });
  }

  #stream(onChunk: (chunk: Uint8Array) => void): void {
    const socket = this.#socket ?? this.#opened();
    socket.on("data", (chunk: Uint8Array) => {
      onChunk(chunk);
      const waitMs = this.#pace?.note(Math.max(chunk.length, LEAST_CHUNK_BYTES)) ?? 0;
      if (waitMs === 0) return;
      socket.pause();
      this.#timer = setTimeout(() => socket.resume(), waitMs).unref();
    });
    socket.resume();
  }

  #opened(): Socket {
    const socket = new Socket({ fd: this.#fd, readable: true, writable: false });
    socket.on("error", () => socket.destroy()).unref();
    this.#socket = socket;
    return socket;
  }

  /** Hands out what lies in the pipe. @param reads the most; a pipe into which others print all the time is never empty */
  #take(reads: number): { readonly bytes: number; readonly isAtEnd: boolean } {
    let bytes = 0;
    for (let read = 0; read < reads; read++) {
      const count = readSome(this.#fd);
      if (count === undefined) return { bytes, isAtEnd: false };
      if (count === 0) return { bytes, isAtEnd: true };
      this.#onChunk(scratch.subarray(0, count));
      bytes += count;
    }
    return { bytes, isAtEnd: false };
  }
}

function* leftIn(socket: Socket): Generator<Uint8Array> {
  for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) yield chunk;
}

/** @returns bytes in `scratch`; 0 at the end, undefined when there is nothing now */
function readSome(fd: number): number | undefined {
  try {
    return readSync(fd, scratch, 0, PIPE_BYTES, null);
  } catch (error) {
    if (hasCode(error, "EAGAIN")) return undefined;
    throw error;
  }
}
