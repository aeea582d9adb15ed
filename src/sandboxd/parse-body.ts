// JSON in the body of an answer, from a side that is not trusted.
import type { z } from "zod";
import type { DaemonClient } from "./client.ts";

/** @param what it is, in the plural @throws Failure SandboxBroken for what no daemon of ours would send */
export function parseBody<Value>(
  client: DaemonClient,
  body: Uint8Array,
  schema: z.ZodType<Value>,
  what: string,
): Value {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8"));
  } catch {
    throw client.distrust(`sends ${what} that are no JSON`);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw client.distrust(`sends ${what} that are none: ${parsed.error.message}`);
  return parsed.data;
}
