// A demonstration that a task may carry beside Harbor's files: the commands of one solution, one per turn.
import { join } from "node:path";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { readUserText } from "../files/user-files.ts";

export const DEMONSTRATION_FILE = "demonstration.json";

const Demonstration = z.strictObject({ commands: z.array(z.string().min(1)) });

/** @throws InputError when the task carries no demonstration, or one that is no list of commands */
export async function readDemonstration(taskFolder: string): Promise<readonly string[]> {
  const path = join(taskFolder, DEMONSTRATION_FILE);
  const fix = 'write {"commands": ["first command", "second command"]}';
  const text = readUserText(path, {
    what: "the demonstration of a task",
    expected: "one per task, for a run of kind sft",
    ifMissing: fix,
  });
  const parsed = Demonstration.safeParse(valueOfJson(text));
  if (parsed.success) return parsed.data.commands;
  throw new InputError({
    what: "not a demonstration",
    where: path,
    expected: `a list of commands: ${z.prettifyError(parsed.error).replace(/\s+/g, " ")}`,
    fix,
  });
}

/** @returns undefined for text that is no JSON; undefined fits no schema */
function valueOfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
