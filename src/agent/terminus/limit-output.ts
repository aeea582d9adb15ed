// Long output loses its middle; a policy reads how much is missing. Words: Harbor 0.26, agents/terminus_2.

/** Harbor's limit of one observation. */
const OUTPUT_LIMIT_BYTES = 10_000;

/** The first and the last half of the limit, cut between characters. UTF-8 bytes are counted, the marker is not. */
export function limitOutput(text: string, limitBytes: number = OUTPUT_LIMIT_BYTES): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= limitBytes) return text;
  const half = Math.floor(limitBytes / 2);
  let headEnd = half;
  while (headEnd > 0 && isContinuation(bytes[headEnd])) headEnd--;
  let tailStart = bytes.length - half;
  while (tailStart < bytes.length && isContinuation(bytes[tailStart])) tailStart++;
  const head = bytes.subarray(0, headEnd).toString();
  const tail = bytes.subarray(tailStart).toString();
  const omitted = tailStart - headEnd;
  return `${head}\n[... output limited to ${limitBytes} bytes; ${omitted} interior bytes omitted ...]\n${tail}`;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && byte >> 6 === 0b10;
}
