// The `t1` command.
import { Command, CommanderError } from "commander";
import { InputError } from "../failure/errors.ts";
import { EXIT_CODES } from "../failure/exit-code.ts";
import { reportError } from "../failure/report-error.ts";
import { hasCode } from "../files/file-errors.ts";
import { addConfigCommand } from "./config-command.ts";
import { addCostCommand } from "./cost-command.ts";
import { addEpisodeCommand } from "./episode-command.ts";
import { addEvaluateCommand } from "./evaluate-command.ts";
import { ownVersion } from "./own-version.ts";
import { addPreflightCommand } from "./preflight-command.ts";
import { addRegradeCommand } from "./regrade-command.ts";
import { addReportCommand } from "./report-command.ts";
import { addRunCommand } from "./run-command.ts";
import { addTasksCommand } from "./tasks-command.ts";

const codes = Object.entries(EXIT_CODES).map(([code, meaning]) => `  ${code.padStart(2)}  ${meaning}`);

const program = new Command("t1")
  .description("Reinforcement learning for agents that work in a real terminal")
  .version(ownVersion())
  .addHelpText("after", `\nExit codes:\n${codes.join("\n")}`)
  .showSuggestionAfterError()
  .exitOverride();

addTasksCommand(program);
addRunCommand(program);
addEvaluateCommand(program);
addRegradeCommand(program);
addReportCommand(program);
addEpisodeCommand(program);
addConfigCommand(program);
addPreflightCommand(program);
addCostCommand(program);

// `t1 … | head`: who reads no further wants no more.
process.stdout.on("error", error => {
  if (hasCode(error, "EPIPE")) process.exit();
  process.stderr.write(`t1: cannot write the output: ${error.message}\n`);
  process.exit(2);
});
// Progress that nobody reads, or that has no room, is no reason to end a run.
process.stderr.on("error", () => {});

try {
  assertWorkingFolder();
  await program.parseAsync();
} catch (error) {
  // Commander has printed usage mistakes itself; asking for help is none.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else process.exitCode = reportError(error, text => process.stderr.write(text));
}

/** A shell may stand in a folder that was removed: no relative path leads anywhere. */
function assertWorkingFolder(): void {
  try {
    process.cwd();
  } catch (cause) {
    throw new InputError(
      { what: "the folder in which this shell stands was removed", fix: "cd to another folder" },
      { cause },
    );
  }
}
