// Captured bytes as text for people and models. Cuts fall between characters, and the text says what was left out.
import type { CapturedOutput } from "./sandbox.ts";

/** A byte order mark is output like any other; without this the decoder would drop it. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Head and tail with a marker between them that counts the omitted bytes; invalid bytes become U+FFFD. */
export function capturedText({ head, tail, omittedBytes }: CapturedOutput): string {
  if (omittedBytes === 0) return decoder.decode(joined(head, tail));
  const headEnd = completeEnd(head);
  const tailStart = completeStart(tail);
  const omitted = omittedBytes + (head.length - headEnd) + tailStart;
  const marker = `\n[… ${omitted} bytes left out …]\n`;
  return decoder.decode(head.subarray(0, headEnd)) + marker + decoder.decode(tail.subarray(tailStart));
}

/** The same as raw bytes, with the same marker. */
export function capturedBytes({ head, tail, omittedBytes }: CapturedOutput): Uint8Array {
  if (omittedBytes === 0) return joined(head, tail);
  return joined(head, Buffer.from(`\n[… ${omittedBytes} bytes left out …]\n`), tail);
}

/** Text as a command would have printed it, all of it kept. */
export function captureText(text: string): CapturedOutput {
  return { head: new TextEncoder().encode(text), tail: new Uint8Array(), omittedBytes: 0 };
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** Where to end so that a character that was cut in the middle is left out as a whole (UTF-8, RFC 3629 section 3). */
function completeEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return sequenceLength(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Where to start so that the rest of a character that was cut in the middle is left out. */
function completeStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < Math.min(3, bytes.length) && isContinuation(bytes[start] ?? 0)) start++;
  return start;
}

function isContinuation(byte: number): boolean {
  return byte >> 6 === 0b10;
}

function sequenceLength(leadByte: number): number {
  if (leadByte >> 5 === 0b110) return 2;
  if (leadByte >> 4 === 0b1110) return 3;
  return leadByte >> 3 === 0b11110 ? 4 : 1;
}
