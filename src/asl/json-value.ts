// Values that states pass to each other. A payload keeps its text beside its value, because histories, size limits and
// journals need the text at every step, and making it is most of the cost of a state.

export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [key: string]: Json | undefined };

export type JsonObject = { readonly [key: string]: Json | undefined };

export interface Payload {
  readonly value: Json;
  readonly text: string;
}

export function toPayload(value: Json): Payload {
  return { value, text: JSON.stringify(value) };
}

/** @param text JSON that we wrote or checked ourselves */
export function parsePayload(text: string): Payload {
  return { value: JSON.parse(text) as Json, text };
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Compares in bytes of UTF-8, the unit of Step Functions' limits, and counts them only near the limit. */
export function exceedsBytes(text: string, limit: number): boolean {
  if (text.length > limit) return true;
  // A UTF-16 unit takes at most three bytes of UTF-8.
  return text.length * 3 > limit && Buffer.byteLength(text) > limit;
}
