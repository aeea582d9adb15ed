// Settings that travel as environment variables. One value says which variable carries which setting, for whoever writes
// them (infra/, a laptop) and whoever reads them (functions, containers), so that the two cannot drift apart.
import { z } from "zod";
import { InputError } from "../failure/errors.ts";

/** A setting and its text in a variable: a zod codec, so that it works in both directions. */
type Codec = z.ZodType<unknown, string | undefined>;
export type Variables = Readonly<Record<string, readonly [name: string, codec: Codec]>>;

/** The settings as they are read: with all defaults. */
type Settings<V extends Variables> = { readonly [Key in keyof V]: z.output<V[Key][1]> };
type OptionalKeys<V extends Variables> = {
  [Key in keyof V]: undefined extends z.input<V[Key][1]> ? Key : never;
}[keyof V];
/** The settings as they are written: one that has a default may be left out. */
type GivenSettings<V extends Variables> = Omit<Settings<V>, OptionalKeys<V>> &
  Partial<Pick<Settings<V>, OptionalKeys<V>>>;

export interface Environment<V extends Variables> {
  /** Name of the variable that carries a setting. */
  readonly names: { readonly [Key in keyof V]: string };
  /** @throws InputError naming each variable that is missing or wrong */
  readonly fromEnvironment: (environment: Readonly<Record<string, string | undefined>>) => Settings<V>;
  /** Settings that are undefined are left out. @throws InputError for a value that could not be read again */
  readonly toEnvironment: (settings: GivenSettings<V>) => Record<string, string>;
}

/** @param owner whose settings they are, for messages */
export function environment<const V extends Variables>(owner: string, variables: V): Environment<V> {
  const refuse = (direction: string, problems: readonly string[]): InputError =>
    new InputError({
      what: `invalid ${direction} of ${owner}`,
      expected: problems.join("; "),
      fix: "the function, task or job definition in infra/stacks sets them",
    });
  const entries = Object.entries(variables);
  return {
    names: Object.fromEntries(entries.map(([key, [name]]) => [key, name])) as Environment<V>["names"],
    fromEnvironment: given => {
      const parsed = entries.map(
        ([key, [name, codec]]) => [key, name, codec.safeParse(given[name])] as const,
      );
      const problems = parsed.flatMap(([, name, { error }]) => messages(name, error));
      if (problems.length > 0) throw refuse("environment", problems);
      return Object.fromEntries(parsed.map(([key, , { data }]) => [key, data])) as Settings<V>;
    },
    toEnvironment: settings => {
      const given = settings as Readonly<Record<string, unknown>>;
      const encoded = entries
        .filter(([key]) => given[key] !== undefined)
        .map(([key, [name, codec]]) => [name, z.safeEncode(codec, given[key])] as const);
      const missing = entries.filter(
        ([key, [, codec]]) => given[key] === undefined && !codec.safeParse(undefined).success,
      );
      const problems = [
        ...missing.map(([key]) => `${key}: missing`),
        ...encoded.flatMap(([name, { error }]) => messages(name, error)),
      ];
      if (problems.length > 0) throw refuse("settings", problems);
      return Object.fromEntries(encoded.map(([name, { data }]) => [name, String(data)]));
    },
  };
}

function messages(name: string, error: z.ZodError | undefined): string[] {
  return error?.issues.map(({ message }) => `${name}: ${message}`) ?? [];
}

export const Text = z.string().min(1);

/** A finite number of at least 0. */
export const NumberText = numberText(z.number().nonnegative());
export const IntegerText = numberText(z.int().nonnegative());
export const CountText = numberText(z.int().positive());

export function numberText<Schema extends z.ZodType<number, number>>(schema: Schema) {
  // Number("") is 0 and Number("0x10") is 16: neither is what somebody meant.
  const text = z.string().regex(/^\d+(\.\d+)?(e[+-]?\d+)?$/, "expected a number");
  return z.codec(text, schema as z.ZodType<number, number>, { decode: Number, encode: String });
}

export const FlagText = z.codec(z.enum(["true", "false"]), z.boolean(), {
  decode: text => text === "true",
  encode: flag => (flag ? "true" : "false"),
});

/** At least one name, with commas. */
export const ListText = z.codec(z.string(), z.array(Text.regex(/^[^,]*$/)).min(1), {
  decode: text => text.split(",").filter(part => part !== ""),
  encode: parts => parts.join(","),
});

/** At least one number, with commas: `0,1,17`. */
export const IntegersText = z.codec(
  z.string().regex(/^\d+(,\d+)*$/, "expected numbers with commas"),
  z.array(z.int().nonnegative()).min(1),
  { decode: text => text.split(",").map(Number), encode: numbers => numbers.join(",") },
);

export function jsonText<Schema extends z.ZodType>(schema: Schema) {
  return z.codec(z.string(), schema, {
    decode: (text, context) => {
      try {
        return JSON.parse(text);
      } catch {
        context.issues.push({ code: "custom", input: text, message: "expected JSON" });
        return z.NEVER;
      }
    },
    encode: value => JSON.stringify(value),
  });
}
