// `t1 config`: what can be set, and whether a file sets it right.
import { type Command, Help } from "commander";
import { z } from "zod";
import { describeKeys, type KeyDescription } from "../config/describe-keys.ts";
import { parseRunConfig } from "../config/parse-config.ts";
import { RunConfig } from "../config/run-config.ts";
import type { SandboxKind } from "../sandbox/open-sandboxes.ts";
import { openStoreIfThere } from "../store/open-store.ts";
import { imagesOption } from "./image-options.ts";
import { print } from "./output.ts";
import { readConfig } from "./read-config.ts";
import { rewardWarnings } from "./reward-warnings.ts";
import { sandboxesOption } from "./sandbox-options.ts";
import { setOption } from "./set-option.ts";
import { storeOption } from "./store-option.ts";

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
    .description("look at everything that `t1 run start` would refuse, and start nothing")
    .addOption(setOption())
    .addOption(storeOption())
    .addOption(sandboxesOption())
    .addOption(imagesOption())
    .option("--json", "print the config with all defaults filled in as JSON on stdout")
    .action(async (file: string, options: CheckOptions) => {
      const config = parseRunConfig(readConfig(file), file, options.set);
      // Only then: loading what plays episodes takes longer than reading a config.
      const { checkLocally } = await import("./run-locally.ts");
      const { inputs, lookedAt } = await checkLocally(
        { config, configFile: file },
        options,
        await openStoreIfThere(options.local),
      );
      const warnings = rewardWarnings(inputs.config);
      for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
      print(options, inputs.config, `${lookedAt.map(line => `  ${line}\n`).join("")}ok: ${file}\n`);
    });
}

interface CheckOptions {
  readonly set?: readonly string[];
  readonly local: string;
  readonly sandboxes: SandboxKind;
  readonly images?: string;
  readonly json?: boolean;
}

/** `rollout.episodes  integer = 512`, and below it what it does. */
function formatKey({ path, algorithms, type, standard, description }: KeyDescription, width: number): string {
  const only = algorithms.length < RunConfig.options.length ? `  (${algorithms.join(", ")})` : "";
  const value = standard === "" || standard === "required" || standard === "none" ? "" : ` = ${standard}`;
  const required = standard === "required" ? ", required" : "";
  const text = new Help().boxWrap(description, width - INDENT.length).replaceAll("\n", `\n${INDENT}`);
  return `${path}  ${type}${value}${required}${only}\n${INDENT}${text}\n`;
}
