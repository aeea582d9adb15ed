// A value of a definition with its `{% … %}` strings compiled. What holds: a text that starts with `{%` and ends with
// `%}` is an expression, everything else is taken as it is, and an expression that yields nothing is an error.
import jsonata from "jsonata";
import { InputError } from "../failure/errors.ts";
import { isJsonObject, type Json } from "./json-value.ts";
import { PURE_FUNCTIONS } from "./jsonata-functions.ts";

export type Template =
  | { readonly kind: "literal"; readonly value: Json }
  | {
      readonly kind: "expression";
      readonly source: string;
      readonly location: string;
      readonly compiled: jsonata.Expression;
    }
  | { readonly kind: "object"; readonly fields: readonly (readonly [string, Template])[] }
  | { readonly kind: "array"; readonly items: readonly Template[] };

/** `$name` in an expression. A value of `undefined` is a variable that does not exist. */
export type Bindings = Readonly<Record<string, unknown>>;

/**
 * What one evaluation may cost. AWS does not publish its limits; these stop a loop without end and leave room for what
 * a machine sensibly computes. A regular expression that backtracks for ever is stopped by none of them. The time is
 * that of a clock on the wall, hence `inTurn` and a generous limit.
 */
const COST_LIMITS = { timeout: 10_000, stack: 1_000, sequence: 1_000_000 } as const;

/** Why an expression has no value; `location` is the field as Step Functions writes it, e.g. `Output/result`. */
export class EvaluationError extends Error {
  override readonly name = "EvaluationError";
  readonly location: string | undefined;

  constructor(message: string, location: string | undefined) {
    super(message);
    this.location = location;
  }
}

export function isExpression(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("{%") && value.endsWith("%}") && value.length >= 4;
}

/**
 * @param location the field's name
 * @param where    the state and the path in the definition, for messages
 * @throws InputError for an expression that does not parse
 */
export function compileTemplate(value: Json, location: string, where: string): Template {
  if (isExpression(value)) return compileExpression(value.slice(2, -2).trim(), location, where);
  if (Array.isArray(value)) {
    const items = value.map((item: Json, index) =>
      compileTemplate(item, `${location}[${index}]`, `${where}[${index}]`),
    );
    return items.every(item => item.kind === "literal")
      ? { kind: "literal", value }
      : { kind: "array", items };
  }
  if (!isJsonObject(value)) return { kind: "literal", value };
  const fields = Object.entries(value).map(
    ([key, field]) => [key, compileTemplate(field ?? null, `${location}/${key}`, `${where}.${key}`)] as const,
  );
  return fields.every(([, field]) => field.kind === "literal")
    ? { kind: "literal", value }
    : { kind: "object", fields };
}

/** @throws EvaluationError */
export async function evaluateTemplate(template: Template, bindings: Bindings): Promise<Json> {
  switch (template.kind) {
    case "literal":
      return template.value;
    case "expression":
      return evaluateExpression(template, bindings);
    case "array": {
      const items: Json[] = [];
      for (const item of template.items) items.push(await evaluateTemplate(item, bindings));
      return items;
    }
    case "object": {
      const fields: Record<string, Json> = {};
      for (const [key, field] of template.fields)
        setOwn(fields, key, await evaluateTemplate(field, bindings));
      return fields;
    }
    default:
      return template satisfies never;
  }
}

/** How Step Functions names the kinds of values in its messages. */
function typeName(value: Json): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** The error for a value of the wrong kind, in Step Functions' words. */
export function unexpectedType(
  template: Template,
  field: string,
  expected: string,
  value: Json,
): EvaluationError {
  const subject =
    template.kind === "expression"
      ? `The JSONata expression '${template.source}' specified for the field '${field}'`
      : `The field '${field}'`;
  return new EvaluationError(
    `${subject} returned an unexpected result type. Expected '${expected}', but was '${typeName(value)}' for value: ${JSON.stringify(value)}`,
    field,
  );
}

function compileExpression(source: string, location: string, where: string): Template {
  let compiled: jsonata.Expression;
  try {
    compiled = jsonata(source, COST_LIMITS);
  } catch (error) {
    throw new InputError(
      {
        what: "invalid JSONata",
        where,
        expected: `expected an expression, got ${JSON.stringify(source)}: ${describeJsonataError(error)}`,
      },
      { cause: error },
    );
  }
  for (const [name, implementation, signature] of PURE_FUNCTIONS)
    compiled.registerFunction(name, implementation as (...args: unknown[]) => unknown, signature);
  compiled.assign("eval", undefined);
  return { kind: "expression", source, location, compiled };
}

async function evaluateExpression(
  { source, location, compiled }: Template & { readonly kind: "expression" },
  bindings: Bindings,
): Promise<Json> {
  const fail = (message: string) =>
    new EvaluationError(
      `The JSONata expression '${source}' specified for the field '${location}' ${message}`,
      location,
    );
  let result: unknown;
  try {
    result = await inTurn(() => compiled.evaluate(undefined, bindings as Record<string, unknown>));
  } catch (error) {
    throw fail(`threw an error during evaluation. ${describeJsonataError(error)}`);
  }
  if (result === undefined) throw fail("returned nothing (undefined).");
  return toPlain(result, () => fail("returned an unsupported result type."));
}

let turn: Promise<unknown> = Promise.resolve();

/**
 * One evaluation after the other. They are made of promises only, so nothing is lost by it; side by side, each of ten
 * thousand children's expressions would take the time of all together and run into its limit.
 */
function inTurn<T>(evaluate: () => Promise<T>): Promise<T> {
  const result = turn.then(evaluate);
  turn = result.then(
    () => {},
    () => {},
  );
  return result;
}

/** JSONata's sequences carry marks, and its functions are objects: what leaves an expression is JSON and nothing else. */
function toPlain(value: unknown, unsupported: () => EvaluationError): Json {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw unsupported();
    return value;
  }
  if (Array.isArray(value)) return value.map(item => toPlain(item, unsupported));
  if (typeof value !== "object" || "_jsonata_lambda" in value || "_jsonata_function" in value)
    throw unsupported();
  const fields: Record<string, Json> = {};
  for (const [key, field] of Object.entries(value))
    if (field !== undefined) setOwn(fields, key, toPlain(field, unsupported));
  return fields;
}

/** `__proto__` in data is a field like any other. */
function setOwn(target: Record<string, Json>, key: string, value: Json): void {
  if (key === "__proto__")
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  else target[key] = value;
}

function describeJsonataError(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  return typeof code === "string" ? `${code}: ${String(message)}` : String(message);
}
