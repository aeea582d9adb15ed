// `t1 preflight`: what would fail, before money is spent.
import type { Command } from "commander";
import { readState } from "../run/run-state.ts";
import { jsonOption, print } from "./output.ts";
import { formatSeconds } from "./progress.ts";

interface PreflightOptions {
  readonly stack: string;
  readonly json?: boolean;
}

export function addPreflightCommand(program: Command): void {
  program
    .command("preflight [run]")
    .description("ask a deployment what will fail before money is spent; exit code 1 when something will")
    .requiredOption("--stack <name>", "deployment in the AWS account and region of the environment")
    .addOption(jsonOption())
    .addHelpText("after", "\nWithout a run only the deployment is looked at. A run has to be in its store.")
    .action(async (run: string | undefined, options: PreflightOptions) => {
      const { openStack } = await import("./stack-run.ts");
      const { askPreflight } = await import("../deployment/preflight.ts");
      const { deployment, store, clients } = await openStack(options.stack);
      if (run !== undefined) await readState(store, run);
      const report = await askPreflight(deployment, run, clients);
      const { problems, warnings, possibleSandboxes, launchSeconds } = report;
      const lines = [
        ...problems.map(problem => `will fail: ${problem}`),
        ...warnings.map(warning => `warning: ${warning}`),
        ...(possibleSandboxes === undefined ? [] : [`${possibleSandboxes} sandboxes can be at work at once`]),
        ...(launchSeconds === undefined
          ? []
          : [`a full wave has been asked for after ${formatSeconds(launchSeconds)}`]),
        problems.length === 0 ? "nothing was found that would fail" : `${problems.length} found`,
      ];
      print(options, report, `${lines.join("\n")}\n`);
      if (problems.length > 0) process.exitCode = 1;
    });
}
