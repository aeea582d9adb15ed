// A Terminus-2 reply in JSON. What is wrong with it is answered in Harbor's words, what can be mended is mended, and
// no text makes it throw. Behaviour: Harbor 0.26, agents/terminus_2/terminus_json_plain_parser.py.
import { stripSpace } from "../../task/strip-space.ts";
import {
  DEFAULT_DURATION_SEC,
  type Keystrokes,
  limitDuration,
  newlineWarning,
  orderWarning,
  type ParsedReply,
} from "./parsed-reply.ts";
import { JsonProblem, type JsonValue, parsePythonJson } from "./python-json.ts";
import { pythonRepr } from "./python-repr.ts";

const REQUIRED = ["analysis", "plan", "commands"] as const;
const NOTHING_FOUND = "No valid JSON found in response";

/** @param text a reply without its reasoning */
export function parseJsonReply(text: string): ParsedReply {
  const reply = parseOnce(text);
  if (reply.error === undefined) return reply;
  for (const [name, mend] of MENDERS) {
    const mended = mend(text, reply.error);
    if (mended === undefined) continue;
    const again = parseOnce(mended);
    if (again.error !== undefined) continue;
    const warning = `AUTO-CORRECTED: ${name} - please fix this in future responses`;
    return { ...again, warnings: [warning, ...again.warnings] };
  }
  return reply;
}

const MENDERS: readonly (readonly [string, (text: string, error: string) => string | undefined])[] = [
  ["Fixed incomplete JSON by adding missing closing brace", closeBraces],
  ["Extracted JSON from mixed content", extractObject],
];

function closeBraces(text: string, error: string): string | undefined {
  if (error !== NOTHING_FOUND && !error.startsWith("Invalid JSON")) return undefined;
  const missing = text.split("{").length - text.split("}").length;
  return missing > 0 ? text + "}".repeat(missing) : undefined;
}

/** The first piece of the text that is JSON with at most one level of objects inside. */
function extractObject(text: string): string | undefined {
  const pieces = text.match(/\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}/g) ?? [];
  return pieces.find(piece => !("problem" in read(piece)));
}

function parseOnce(text: string): ParsedReply {
  const warnings: string[] = [];
  const failed = (error: string): ParsedReply => ({
    commands: [],
    isComplete: false,
    error,
    warnings,
    analysis: "",
    plan: "",
  });
  const bounds = findObject(text);
  if (bounds === undefined) {
    warnings.push("No valid JSON object found");
    return failed(NOTHING_FOUND);
  }
  const [start, end] = bounds;
  if (stripSpace(text.slice(0, start)) !== "") warnings.push("Extra text detected before JSON object");
  if (stripSpace(text.slice(end)) !== "") warnings.push("Extra text detected after JSON object");
  const content = text.slice(start, end);
  const result = read(content);
  if ("problem" in result) return failed(`Invalid JSON: ${result.problem}${quoteContent(content)}`);
  if (!isObject(result.value)) return failed("Response must be a JSON object");
  const fields = result.value;
  const missing = REQUIRED.filter(name => !fields.has(name));
  if (missing.length > 0) return failed(`Missing required fields: ${missing.join(", ")}`);
  for (const name of ["analysis", "plan"]) {
    if (typeof fields.get(name) !== "string") warnings.push(`Field '${name}' should be a string`);
  }
  const list = fields.get("commands");
  if (!isList(list)) return failed("Field 'commands' must be an array");
  warnings.push(...orderWarning("Fields", fieldPositions(content)));
  const complete = fields.get("task_complete") ?? null;
  if (complete !== null && typeof complete !== "boolean" && typeof complete !== "string")
    warnings.push("Field 'task_complete' should be a boolean or string");

  const isComplete = meansYes(complete);
  const said = { analysis: asText(fields.get("analysis")), plan: asText(fields.get("plan")) };
  const commands = readCommands(list, warnings);
  if ("error" in commands) {
    if (!isComplete) return { ...failed(commands.error), ...said };
    warnings.push(commands.error);
    return { commands: [], isComplete, warnings, ...said };
  }
  return { commands: commands.list, isComplete, warnings, ...said };
}

/** The first balanced object: [start, end). Quotes before it count, as they do in Harbor. */
function findObject(text: string): readonly [number, number] | undefined {
  let start = -1;
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "\\") at++;
    else if (character === '"') isInString = !isInString;
    else if (isInString) continue;
    else if (character === "{") {
      if (depth === 0) start = at;
      depth++;
    } else if (character === "}") {
      depth--;
      if (depth === 0 && start !== -1) return [start, at + 1];
    }
  }
  return undefined;
}

function read(content: string): { readonly value: JsonValue } | { readonly problem: string } {
  try {
    return { value: parsePythonJson(content) };
  } catch (error) {
    if (error instanceof JsonProblem) return { problem: error.message };
    throw error;
  }
}

function quoteContent(content: string): string {
  const characters = [...content];
  if (characters.length < 200) return ` | Content: ${pythonRepr(content)}`;
  return ` | Content preview: ${pythonRepr(characters.slice(0, 100).join(""))}...`;
}

function fieldPositions(content: string): Map<string, number> {
  const found = REQUIRED.map(name => [name, content.search(new RegExp(`"${name}"\\s*:`))] as const);
  return new Map(found.filter(([, position]) => position !== -1));
}

function readCommands(
  list: readonly JsonValue[],
  warnings: string[],
): { readonly list: readonly Keystrokes[] } | { readonly error: string } {
  const commands: Keystrokes[] = [];
  for (const [index, item] of list.entries()) {
    const name = `Command ${index + 1}`;
    if (!isObject(item)) return { error: `${name} must be an object` };
    if (!item.has("keystrokes")) return { error: `${name} missing required 'keystrokes' field` };
    const keys = item.get("keystrokes");
    if (typeof keys !== "string") return { error: `${name} 'keystrokes' must be a string` };
    let duration: JsonValue | undefined = item.get("duration");
    if (duration === undefined) {
      warnings.push(`${name}: Missing duration field, using default 1.0`);
      duration = DEFAULT_DURATION_SEC;
    } else if (typeof duration !== "number" && typeof duration !== "boolean") {
      warnings.push(`${name}: Invalid duration value, using default 1.0`);
      duration = DEFAULT_DURATION_SEC;
    }
    const unknown = [...item.keys()].filter(key => key !== "keystrokes" && key !== "duration");
    if (unknown.length > 0) warnings.push(`${name}: Unknown fields: ${unknown.join(", ")}`);
    warnings.push(...newlineWarning(keys, index, list.length));
    commands.push({ keys, durationSec: limitDuration(Number(duration)) });
  }
  return { list: commands };
}

/** A string means yes in three spellings; anything else means yes where Python takes it for true. */
function meansYes(value: JsonValue): boolean {
  if (typeof value === "string") return ["true", "1", "yes"].includes(value.toLowerCase());
  if (isList(value)) return value.length > 0;
  if (isObject(value)) return value.size > 0;
  return value !== null && value !== false && value !== 0;
}

function asText(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}

function isObject(value: JsonValue | undefined): value is ReadonlyMap<string, JsonValue> {
  return value instanceof Map;
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}
