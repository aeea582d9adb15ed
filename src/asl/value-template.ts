// A value of a definition with its `{% … %}` strings compiled. A text that starts with `{%` and ends with `%}` is an
// expression, everything else is a literal, and an expression that returns nothing is an error.
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

/** Values of `$name` in an expression. A variable whose value is `undefined` does not exist. */
export type Bindings = Readonly<Record<string, unknown>>;

/**
 * Limits of one evaluation. AWS does not publish its own; ours stop an endless loop and leave room for sensible machines.
 * None of them stops a regular expression that backtracks for ever. The timeout is wall time in milliseconds, hence
 * `inTurn` and a generous value.
 */
const COST_LIMITS = { timeout: 10_000, stack: 1_000, sequence: 1_000_000 } as const;

/** An expression has no value; `location` is the field as Step Functions writes it, e.g. `Output/result`. */
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

/** The name of a value's type in Step Functions' messages. */
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
 * Runs one evaluation after the other. Evaluations only compute, so running them side by side would save nothing, and
 * each of ten thousand children's expressions would take the time of all together and reach its time limit.
 */
function inTurn<T>(evaluate: () => Promise<T>): Promise<T> {
  const result = turn.then(evaluate);
  turn = result.then(
    () => {},
    () => {},
  );
  return result;
}

/** Makes plain JSON of a result: JSONata's sequences carry extra properties, and its functions are objects. */
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

/** Treats `__proto__` in data as a field like any other. */
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
