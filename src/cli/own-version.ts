// Which version of t1 this is.
import { readFileSync } from "node:fs";
import { z } from "zod";

export function ownVersion(): string {
  const file = new URL("../../package.json", import.meta.url);
  return z.looseObject({ version: z.string() }).parse(JSON.parse(readFileSync(file, "utf8"))).version;
}
