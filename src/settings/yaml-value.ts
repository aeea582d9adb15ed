// What a YAML document says, or that it says nothing: an alias may stand for what is not there, or for far too much.
import type { Document } from "yaml";
import { InputError } from "../failure/errors.ts";

/**
 * @param document of a text that was parsed without an error
 * @param where what it is called in errors
 * @throws InputError for an alias of nothing, or of so much that it cannot be meant
 */
export function valueOfYaml(document: Document, where: string): unknown {
  try {
    return document.toJS();
  } catch (cause) {
    const expected = cause instanceof Error ? cause.message : String(cause);
    throw new InputError({ what: "not YAML", where, expected, fix: "correct the alias" }, { cause });
  }
}
