// JSONPath definitions in JSONata, as far as paths are plain: it opens recordings of machines that use paths only to
// hand values on. What has no plain counterpart is refused by name, and the recording stays out of scope.
import { isJsonObject, type Json, type JsonObject } from "../../src/asl/json-value.ts";

export class Untranslatable extends Error {}

export function translate(definition: JsonObject): Record<string, Json> {
  return { ...scope(definition), QueryLanguage: "JSONata" };
}

function scope(raw: JsonObject): Record<string, Json> {
  const { States: states, ...rest } = raw;
  if (!isJsonObject(states)) throw new Untranslatable("no states");
  return {
    ...(rest as Record<string, Json>),
    States: Object.fromEntries(
      Object.entries(states).map(([name, state]) => [name, translateState(state as JsonObject)]),
    ),
  };
}

function translateState(raw: JsonObject): Record<string, Json> {
  const state: Record<string, Json> = {};
  for (const [field, value] of Object.entries(raw) as [string, Json][]) {
    const isDirect =
      /^(Seconds|Timestamp|TimeoutSeconds|HeartbeatSeconds|Error|Cause|MaxConcurrency|ToleratedFailureCount|ToleratedFailurePercentage)Path$/.test(
        field,
      );
    if (isDirect) state[field.slice(0, -4)] = expression(value);
    else if (field === "Parameters") state[parametersOf(String(raw.Type))] = template(value);
    else if (field === "ItemSelector") state.ItemSelector = template(value);
    else if (field === "Result") state.Output = value;
    else if (field === "ItemsPath") state.Items = expression(value);
    else if (field === "Iterator" || field === "ItemProcessor")
      state.ItemProcessor = scope(value as JsonObject);
    else if (field === "Branches") state.Branches = (value as readonly JsonObject[]).map(scope);
    else if (field === "ItemReader" || field === "ResultWriter") state[field] = place(value as JsonObject);
    else if (/Path$|^ResultSelector$|^Assign$|^Choices$/.test(field)) throw new Untranslatable(field);
    else state[field] = value;
  }
  for (const catcher of (Array.isArray(raw.Catch) ? raw.Catch : []) as readonly JsonObject[])
    if ("ResultPath" in catcher) throw new Untranslatable("ResultPath of a catcher");
  return state;
}

function parametersOf(type: string): string {
  if (type === "Pass") return "Output";
  return type === "Map" ? "ItemSelector" : "Arguments";
}

function place({ Parameters: given, ...rest }: JsonObject): Record<string, Json> {
  return { ...(rest as Record<string, Json>), ...(given !== undefined && { Arguments: template(given) }) };
}

function template(value: Json): Json {
  if (typeof value === "string" && value.startsWith("{%"))
    throw new Untranslatable("a literal that JSONata would evaluate");
  if (Array.isArray(value)) return value.map(template);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    (Object.entries(value) as [string, Json][]).map(([key, field]) =>
      key.endsWith(".$") ? [key.slice(0, -2), expression(field)] : [key, template(field)],
    ),
  );
}

function expression(path: Json): string {
  const match = typeof path === "string" ? /^(\$\$?)((?:\.\w+)*)$/.exec(path) : null;
  if (match === null) throw new Untranslatable(`the path ${String(path)}`);
  return `{% $states.${match[1] === "$" ? "input" : "context"}${match[2]} %}`;
}
