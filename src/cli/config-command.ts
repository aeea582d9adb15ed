// `t1 config`: what can be set, and whether a file sets it right.
import type { Command } from "commander";
import { z } from "zod";
import { describeKeys } from "../config/describe-keys.ts";
import { parseRunConfig } from "../config/parse-config.ts";
import { RunConfig } from "../config/run-config.ts";
import { print } from "./output.ts";
import { readConfig } from "./read-config.ts";
import { formatTable } from "./table.ts";

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
      const rows = describeKeys().map(({ path, kinds, type, standard, description }) => [
        path,
        kinds.join(" "),
        type,
        standard,
        description,
      ]);
      print(
        {},
        undefined,
        formatTable(
          ["key", "kinds", "type", "default", "what it does, and why its default is what it is"],
          rows,
        ),
      );
    });

  command
    .command("check <file>")
    .description("check a run config; prints it with all defaults filled in")
    .action(async (file: string) => {
      print({ json: true }, parseRunConfig(await readConfig(file), file), "");
    });
}
