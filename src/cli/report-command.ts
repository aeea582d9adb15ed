// `t1 report`: one HTML file about a run.
import { resolve } from "node:path";
import type { Command } from "commander";
import { makeReport } from "../report/report.ts";
import { openStore } from "../store/open-store.ts";
import { jsonOption, print, writeOut } from "./output.ts";
import { Progress } from "./progress.ts";
import { storeOption } from "./store-option.ts";

interface ReportOptions {
  readonly local: string;
  readonly out: string;
  readonly json?: boolean;
}

export function addReportCommand(program: Command): void {
  program
    .command("report <run>")
    .description("write one self-contained HTML file about a run: curves, times, evaluations, episodes")
    .addOption(storeOption())
    .option("--out <file>", "file to write; one that is there is replaced", "report.html")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      "\nA run that is at work, was stopped or is damaged has a report too: it says what is missing. The file runs no script and loads nothing.",
    )
    .action(async (run: string, options: ReportOptions) => {
      const store = await openStore(options.local, "read");
      const progress = new Progress({ stream: process.stderr });
      progress.begin(`reading ${run}`);
      const { text, iterationCount, evaluationCount, episodeCount, leftOutCount, problems } =
        await makeReport(store, run).finally(() => progress.clear());
      const file = resolve(options.out);
      await writeOut(file, text);
      const result = {
        run,
        file,
        sizeBytes: Buffer.byteLength(text),
        iterationCount,
        evaluationCount,
        episodeCount,
        leftOutCount,
        problems,
      };
      const size = `${(result.sizeBytes / 1e6).toFixed(1)} MB`;
      print(
        options,
        result,
        `report of ${run}: ${iterationCount} iterations, ${evaluationCount} evaluations, ${episodeCount} episodes, ${size}\n${file}\n`,
      );
      if (problems.length > 0)
        process.stderr.write(`t1: ${problems.length} objects could not be read; the report lists them\n`);
    });
}
