// `t1 config`: what can be set, and whether a file sets it right.
import { type Command, Help } from "commander";
import { z } from "zod";
import { describeKeys, type KeyDescription } from "../config/describe-keys.ts";
import { parseRunConfig } from "../config/parse-config.ts";
import { RunConfig } from "../config/run-config.ts";
import { print } from "./output.ts";
import { readConfig } from "./read-config.ts";

/** Lines that are longer are hard to read, however wide the terminal is. */
const WIDTH = 100;
const INDENT = "    ";

export function addConfigCommand(program: Command): void {
  const command = program.command("config").description("explain and check run configs");

  command
    .command("schema")
    .description("print the schema of run configs: JSON Schema for editors, or --text for people")
    .option("--text", "list every key with its default and the reason for it")
    .action((options: { text?: boolean }) => {
      if (!options.text) {
        print({ json: true }, z.toJSONSchema(RunConfig, { io: "input" }), "");
        return;
      }
      const width = Math.min(process.stdout.columns ?? WIDTH, WIDTH);
      print(
        {},
        undefined,
        describeKeys()
          .map(key => formatKey(key, width))
          .join(""),
      );
    });

  command
    .command("check <file>")
    .description("check a run config; prints it with all defaults filled in")
    .action(async (file: string) => {
      print({ json: true }, parseRunConfig(readConfig(file), file), "");
    });
}

/** `rollout.episodes  integer = 512`, and below it what it does. */
function formatKey({ path, algorithms, type, standard, description }: KeyDescription, width: number): string {
  const only = algorithms.length < RunConfig.options.length ? `  (${algorithms.join(", ")})` : "";
  const value = standard === "" || standard === "required" || standard === "none" ? "" : ` = ${standard}`;
  const required = standard === "required" ? ", required" : "";
  const text = new Help().boxWrap(description, width - INDENT.length).replaceAll("\n", `\n${INDENT}`);
  return `${path}  ${type}${value}${required}${only}\n${INDENT}${text}\n`;
}
