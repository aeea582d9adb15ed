import { InputError } from "../failure/errors.ts";

/** @throws InputError */
export function parseCount(text: string): number {
  const count = Number(text);
  if (Number.isSafeInteger(count) && count >= 0) return count;
  throw new InputError({ what: "not a number", where: text, expected: "a whole number from 0" });
}
