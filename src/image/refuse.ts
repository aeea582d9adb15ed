// Refusals of one instruction, by file and line.
import { InputError } from "../failure/errors.ts";
import type { Dockerfile, Instruction } from "./dockerfile.ts";

export type Refuse = (what: string, expected?: string) => InputError;

export function refusalOf({ file }: Dockerfile, { line }: Pick<Instruction, "line">): Refuse {
  return (what, expected) =>
    new InputError({
      what,
      where: `${file}:${line}`,
      ...(expected !== undefined && { expected }),
      fix: "change the line, leave the task out, or use a provider that builds with Docker",
    });
}
