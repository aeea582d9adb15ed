// A demonstration that a task may carry beside Harbor's files: the commands of one way through it, one per turn.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";

export const DEMONSTRATION_FILE = "demonstration.json";

const Demonstration = z.strictObject({ commands: z.array(z.string().min(1)) });

/** @throws InputError when the task carries none, or one that is no list of commands */
export async function readDemonstration(taskFolder: string): Promise<readonly string[]> {
  const path = join(taskFolder, DEMONSTRATION_FILE);
  const fix = 'write {"commands": ["first command", "second command"]}';
  const text = await readFile(path, "utf8").catch(cause => {
    throw new InputError(
      {
        what: "the task has no demonstration",
        where: path,
        expected: "a demonstration per task for a run of kind sft",
        fix,
      },
      { cause },
    );
  });
  try {
    return Demonstration.parse(JSON.parse(text)).commands;
  } catch (cause) {
    throw new InputError(
      { what: "not a demonstration", where: path, expected: "a list of commands", fix },
      { cause },
    );
  }
}
