// JSON objects of a store: parsed by a schema when read, with the key and the place in it in every error; written with
// the keys in the order they were given and a newline at the end, so that equal values are equal bytes.
import type { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";
import type { ObjectStore } from "./object-store.ts";

/** More would bury the first one, from which the others often follow. */
const SHOWN_ISSUES = 5;

/** @throws InputError when the object is missing, is no whole JSON, or does not fit the schema */
export async function readJson<Schema extends z.ZodType>(
  store: ObjectStore,
  key: string,
  schema: Schema,
): Promise<z.output<Schema>> {
  return parseJson(await readBody(store, key), key, schema);
}

/** One value per line. @throws InputError as `readJson`, with the line */
export async function readJsonLines<Schema extends z.ZodType>(
  store: ObjectStore,
  key: string,
  schema: Schema,
): Promise<readonly z.output<Schema>[]> {
  const text = decode(await readBody(store, key), key);
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.pop() !== "") throw corrupt(key, `expected a newline at the end of line ${lines.length + 1}`);
  return lines.map((line, index) => parseText(line, `${key}:${index + 1}`, schema));
}

/** For an object that was read already. @param key where the bytes are from, for messages */
export function parseJson<Schema extends z.ZodType>(
  body: Uint8Array,
  key: string,
  schema: Schema,
): z.output<Schema> {
  return parseText(decode(body, key), key, schema);
}

/** @throws InvariantError for what JSON would change in silence: NaN, infinities, typed arrays, maps, sets */
export function encodeJson(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, refuseLossy, 2)}\n`);
}

/** As `encodeJson`, one value per line. */
export function encodeJsonLines(values: readonly unknown[]): Uint8Array {
  return Buffer.from(values.map(value => `${JSON.stringify(value, refuseLossy)}\n`).join(""));
}

async function readBody(store: ObjectStore, key: string): Promise<Uint8Array> {
  const found = await store.get(key);
  if (found === undefined)
    throw new InputError({ what: "missing object", where: key, expected: `expected it in ${store.url}` });
  return found.body;
}

function decode(body: Uint8Array, key: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch (error) {
    throw corrupt(key, `expected UTF-8 text, got ${body.length} bytes that are none`, error);
  }
}

function parseText<Schema extends z.ZodType>(text: string, where: string, schema: Schema): z.output<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw corrupt(where, `expected JSON, got ${text.length} characters that are none: ${detail}`, error);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => `${showPath(path)}: ${message}`);
  const more = issues.length > SHOWN_ISSUES ? [`and ${issues.length - SHOWN_ISSUES} more`] : [];
  throw new InputError(
    { what: "invalid object", where, expected: [...issues.slice(0, SHOWN_ISSUES), ...more].join("; ") },
    { cause: parsed.error },
  );
}

/** Stores write whole objects, so this one was copied badly or edited by hand. */
function corrupt(where: string, expected: string, cause?: unknown): InputError {
  return new InputError(
    {
      what: "corrupt object",
      where,
      expected,
      fix: "restore it from a copy, or delete it and run again the stage that writes it",
    },
    { cause },
  );
}

function showPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "(top level)";
  return path.reduce<string>((shown, part) => {
    if (typeof part === "number") return `${shown}[${part}]`;
    return shown === "" ? String(part) : `${shown}.${String(part)}`;
  }, "");
}

function refuseLossy(key: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value))
    throw new InvariantError("JSON cannot hold this number", { key, value: String(value) });
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value))
    throw new InvariantError("JSON cannot hold this kind of value", { key, kind: value.constructor.name });
  return value;
}
