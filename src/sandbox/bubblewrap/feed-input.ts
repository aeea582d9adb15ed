// What a command is given to read.
import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { writeSome } from "./requests.ts";

/**
 * Writes all bytes and closes. A command that does not read them all is no error.
 *
 * @param keep another end, so that what is written is kept until the command has opened its own
 * @returns ends it
 */
export function feedInput(
  { write, keep }: { readonly write: number; readonly keep: number },
  bytes: Uint8Array,
): () => void {
  const written = bytes.length === 0 ? 0 : writeSome(write, bytes);
  if (written === bytes.length) {
    closeSync(write);
    return () => closeSync(keep);
  }
  const socket = new Socket({ fd: write, readable: false, writable: true });
  socket.on("error", () => socket.destroy());
  socket.end(bytes.subarray(written));
  return () => {
    socket.destroy();
    closeSync(keep);
  };
}
