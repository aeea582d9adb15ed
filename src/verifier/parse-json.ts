// JSON of an untrusted file.

/** @returns undefined for what is no JSON, or nested more deeply than can be read */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}
