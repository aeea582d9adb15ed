// Our ends of a command's pipes.
import { Socket } from "node:net";

/**
 * A background process may go on printing after its command has ended, into nothing. Without this a server that was
 * started with `&` would die of SIGPIPE at its next line; beyond these bytes it does.
 */
const BACKGROUND_BYTES = 16 << 20;

export class OutputReader {
  readonly #socket: Socket;
  /** Resolves when nobody holds the other end any more. */
  readonly ended: Promise<void>;
  byteCount = 0;

  constructor(fd: number, onChunk: (chunk: Uint8Array) => void) {
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#socket.on("data", chunk => {
      this.byteCount += chunk.length;
      onChunk(chunk);
    });
    this.#socket.on("error", () => this.#socket.destroy());
    this.ended = new Promise(resolve => this.#socket.once("close", () => resolve()));
  }

  /** The command has ended: what is printed from now on is nobody's. */
  letGo(): void {
    let leftBytes = BACKGROUND_BYTES;
    this.#socket.removeAllListeners("data");
    this.#socket.on("data", chunk => {
      leftBytes -= chunk.length;
      if (leftBytes < 0) this.#socket.destroy();
    });
    this.#socket.unref();
  }
}

/** Writes all bytes and closes. A command that does not read them all is no error. @returns ends it early */
export function feedInput(fd: number, bytes: Uint8Array): () => void {
  const socket = new Socket({ fd, readable: false, writable: true });
  socket.on("error", () => socket.destroy());
  socket.end(bytes);
  return () => void socket.destroy();
}
