// Every key of a run config with its default and reason, read from the schema itself.
import { z } from "zod";
import { RunConfig } from "./run-config.ts";

export interface KeyDescription {
  /** "training.actor.learningRate" */
  readonly path: string;
  /** Algorithms whose runs have the key. */
  readonly algorithms: readonly string[];
  readonly type: string;
  /** As JSON; "required" or "none" where there is no default. */
  readonly standard: string;
  readonly description: string;
}

interface JsonSchema {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly default?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

export function describeKeys(): KeyDescription[] {
  const keys = new Map<string, { algorithms: string[]; rest: Omit<KeyDescription, "path" | "algorithms"> }>();
  for (const option of RunConfig.options) {
    const schema = z.toJSONSchema(option, { io: "input", reused: "inline" }) as JsonSchema;
    const algorithm = String(schema.properties?.algorithm?.const);
    for (const [path, rest] of walk(schema, "")) {
      const known = keys.get(path);
      if (known === undefined) keys.set(path, { algorithms: [algorithm], rest });
      else {
        known.algorithms.push(algorithm);
        // Lists a key's descriptions of different algorithms side by side, and `algorithm` itself first.
        known.rest = {
          ...known.rest,
          type: joined(known.rest.type, " | ", rest.type),
          standard: joined(known.rest.standard, " or ", rest.standard),
          description: joined(known.rest.description, " ", rest.description),
        };
      }
    }
  }
  return [...keys].map(([path, { algorithms, rest }]) => ({ path, algorithms, ...rest }));
}

function joined(before: string, separator: string, now: string): string {
  return before.includes(now) ? before : `${before}${separator}${now}`;
}

function* walk(
  { properties = {}, required = [] }: JsonSchema,
  prefix: string,
): Generator<[string, Omit<KeyDescription, "path" | "algorithms">]> {
  for (const [name, schema] of Object.entries(properties)) {
    const path = prefix + name;
    const standard = required.includes(name)
      ? "required"
      : schema.default === undefined
        ? "none"
        : JSON.stringify(schema.default);
    const isGroup = schema.properties !== undefined;
    yield [
      path,
      { type: typeOf(schema), standard: isGroup ? "" : standard, description: schema.description ?? "" },
    ];
    if (isGroup) yield* walk(schema, `${path}.`);
  }
}

function typeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.join(" | ");
  if (schema.anyOf !== undefined)
    return schema.anyOf
      .map(one => (one.properties ? `{${Object.keys(one.properties).join(", ")}}` : typeOf(one)))
      .join(" | ");
  return schema.properties === undefined ? (schema.type ?? "") : "group";
}
