// Options of commands that can work on a deployment instead of this machine.
import { InvalidArgumentError, Option } from "commander";

/** The name of a deployment (`name` in its config), not of one of its CloudFormation stacks. */
export function stackOption(): Option {
  return new Option(
    "--stack <name>",
    "deployment in the AWS account and region of the environment, instead of --local",
  ).conflicts("local");
}

export function isOnStack<Options extends { readonly stack?: string }>(
  options: Options,
): options is Options & { readonly stack: string } {
  return options.stack !== undefined;
}

export function budgetOption(): Option {
  return new Option(
    "--budget-usd <usd>",
    "with --stack: begin no iteration once the run has cost this much",
  ).argParser(positive);
}

export const seconds = positive;

function positive(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value <= 0)
    throw new InvalidArgumentError("expected a number above 0");
  return value;
}
