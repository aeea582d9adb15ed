// Reads the items of a Distributed Map from S3: an object of JSON lines.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { holding } from "./clock.ts";
import { exceedsBytes, type Json } from "./json-value.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { StateError } from "./state-error.ts";

const Place = z.strictObject({ Bucket: z.string().min(1), Key: z.string().min(1) });

/**
 * @param place the reader's evaluated arguments
 * @throws StateError States.ItemReaderFailed when the object is missing, is not JSON lines, or has an item that no state
 *   could take
 * @throws Failure when the store fails
 */
export function readItems(
  place: Json,
  { bucket, clock, limits }: Pick<RuntimeContext, "bucket" | "clock" | "limits">,
): Promise<Json[]> {
  return holding(clock, async () => {
    const parsed = Place.safeParse(place);
    if (!parsed.success) throw failed(z.prettifyError(parsed.error));
    const { Bucket: name, Key: key } = parsed.data;
    const store = bucket(name);
    if (store === undefined) throw failed("The specified bucket does not exist");
    const items: Json[] = [];
    let number = 0;
    try {
      for await (const line of readLines(store.stream(key))) {
        number++;
        if (line.trim() === "") continue;
        const item = parseItem(line, `line ${number} of ${key}`);
        if (exceedsBytes(JSON.stringify(item), limits.payloadBytes))
          throw failed(`The size of item ${items.length} exceeds the maximum number of bytes service limit.`);
        items.push(item);
      }
    } catch (error) {
      // The store throws an InputError for an object that does not exist.
      throw error instanceof InputError ? failed(error.message) : error;
    }
    return items;
  });
}

/** Lines without their ends (`\n` or `\r\n`); the last one may lack it. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  let rest = "";
  const take = (bytes: Uint8Array | undefined): string => {
    try {
      return decoder.decode(bytes, { stream: bytes !== undefined });
    } catch {
      throw failed("The object is not UTF-8 text.");
    }
  };
  for await (const chunk of chunks) {
    const lines = (rest + take(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
  rest += take(undefined);
  if (rest !== "") yield rest.endsWith("\r") ? rest.slice(0, -1) : rest;
}

function parseItem(text: string, where: string): Json {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw failed(`${where} is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function failed(cause: string): StateError {
  return new StateError("States.ItemReaderFailed", cause);
}
