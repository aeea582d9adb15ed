// Parses JSON of an untrusted file.

/** @returns undefined when the bytes are no JSON, or nest too deeply for the parser */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}
