// Where `t1 tasks check` keeps its report when nobody says where.
import { basename, join, resolve } from "node:path";
import { sha256 } from "../files/sha256.ts";

export function defaultReport(folder: string): string {
  const absolute = resolve(folder);
  return join(".t1", "checks", `${basename(absolute)}-${sha256(Buffer.from(absolute)).slice(0, 8)}.jsonl`);
}
