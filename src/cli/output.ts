// How commands write results.
import { Option } from "commander";

export function jsonOption(): Option {
  return new Option("--json", "print the result as JSON on stdout");
}

/** Writes a result: JSON for machines, text for people. */
export function print(options: { readonly json?: boolean }, result: unknown, text: string): void {
  process.stdout.write(options.json ? `${JSON.stringify(result, undefined, 2)}\n` : text);
}
