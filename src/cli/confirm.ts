// A question that a person answers before something cannot be undone.
import { createInterface } from "node:readline/promises";
import { InputError } from "../failure/errors.ts";

/** @throws InputError for any answer but yes, and where there is no terminal to ask at */
export async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new InputError({
      what: "this has to be confirmed",
      where: question,
      expected: "an answer, and there is no terminal to ask at",
      fix: "add --yes",
    });
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await asking.question(`${question} [yes/no] `);
    if (!/^y(?:es)?$/i.test(answer.trim())) throw new InputError("nothing was deleted");
  } finally {
    asking.close();
  }
}
