// The one hash of stored content: etags, manifests and write-once checks all speak SHA-256 in hexadecimal.
import { createHash } from "node:crypto";

/** @returns 64 hexadecimal digits */
export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
