// Reads numbers and truth values from TOML like Harbor: text that spells a number counts as one, true counts as
// 1, and a whole float may stand for an integer (pydantic 2's lax mode). Behaviour recorded with Harbor 0.26.0.
import { z } from "zod";
import { stripSpace } from "./strip-space.ts";

const FLOAT_TEXT = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const INFINITY_TEXT = /^([+-]?)inf(inity)?$/i;
const WHOLE_TEXT = /^[+-]?\d+(_\d+)*(\.0+)?$/;
const TRUE_TEXT = new Set(["1", "true", "t", "yes", "y", "on"]);
const FALSE_TEXT = new Set(["0", "false", "f", "no", "n", "off"]);

/** A TOML integer always fits; a TOML float converts to an integer only within 64 bits. Integers above 2^53 are bigint. */
const INT64_LIMIT = 2 ** 63;

/** A number of any kind, infinite included. NaN is refused: it compares false with every limit. */
export const LaxNumber = lax("a number", toNumber);

/** A number without fraction. */
export const LaxInteger = lax("a whole number", toInteger);

/** A number that is not infinite. */
export const LaxFinite = lax("a finite number", value => {
  const number = toNumber(value);
  return number !== undefined && Number.isFinite(number) ? number : undefined;
});

export const LaxBoolean = lax("true or false", toBoolean);

/** A user name, or a numeric user id. */
export const User = lax("a user name or a numeric user id", value => {
  if (typeof value === "string") return value;
  return toInteger(value);
});

/** @returns undefined for NaN and anything that is no number */
export function toNumber(value: unknown): number | undefined {
  if (typeof value === "number") return Number.isNaN(value) ? undefined : value;
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  return typeof value === "string" ? parseNumber(value) : undefined;
}

function toInteger(value: unknown): number | undefined {
  if (typeof value === "number") {
    return Number.isInteger(value) && Math.abs(value) < INT64_LIMIT ? value : undefined;
  }
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return undefined;
  const text = stripSpace(value);
  return WHOLE_TEXT.test(text) ? Number(text.replaceAll("_", "")) : undefined;
}

function toBoolean(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (value === 1) return true;
  if (value === 0) return false;
  if (typeof value !== "string") return undefined;
  if (TRUE_TEXT.has(value.toLowerCase())) return true;
  return FALSE_TEXT.has(value.toLowerCase()) ? false : undefined;
}

function parseNumber(value: string): number | undefined {
  const text = stripSpace(value);
  if (FLOAT_TEXT.test(text)) return Number(text);
  const infinity = INFINITY_TEXT.exec(text);
  if (infinity !== null) return infinity[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  // Digits may be grouped, but then white space may not surround them.
  if (value.startsWith("_") || value.endsWith("_") || value.includes("__")) return undefined;
  const digits = value.replaceAll("_", "");
  return FLOAT_TEXT.test(digits) ? Number(digits) : undefined;
}

function lax<T>(expected: string, convert: (value: unknown) => T | undefined) {
  return z.unknown().transform((value, context): T => {
    const converted = convert(value);
    if (converted !== undefined) return converted;
    context.addIssue({ code: "custom", message: expected });
    return z.NEVER;
  });
}
