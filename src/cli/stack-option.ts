// Options of commands that can work on a deployment instead of this machine.
import { type Command, InvalidArgumentError, Option } from "commander";

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

/** By the names commander keeps them under. */
const ONLY_ON_STACK = ["budgetUsd", "now", "every"];
const ONLY_HERE = ["sandboxes", "images", "processes", "sampler"];

/**
 * Refuses what a command line asks for and would not get, e.g. a budget of a run on this machine. Variables of the
 * environment may say things about both.
 */
export function refuseUnheard(command: Command): Command {
  return command.hook("preAction", (_, called) => {
    const there = isOnStack(called.opts());
    const unheard = called.options.find(
      option =>
        (there ? ONLY_HERE : ONLY_ON_STACK).includes(option.attributeName()) &&
        called.getOptionValueSource(option.attributeName()) === "cli",
    );
    if (unheard === undefined) return;
    called.error(
      `error: option '${unheard.flags}' ${there ? "is of runs on this machine: leave it or --stack out" : "needs --stack: nothing here would heed it"}`,
    );
  });
}

export const seconds = positive;

function positive(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value <= 0)
    throw new InvalidArgumentError("expected a number above 0");
  return value;
}
