// `t1 episode`: recorded episodes in the form that other programs read.
import { type Command, Option } from "commander";
import { toAtif } from "../agent/atif.ts";
import { TranscriptTurn } from "../agent/transcript.ts";
import { InputError } from "../failure/errors.ts";
import { readEpisodeRecord } from "../rollout/episode-record.ts";
import { readAdmitted } from "../run/claim.ts";
import {
  arraysKey,
  attemptPrefix,
  episodePrefix,
  evaluationPrefix,
  iterationPrefix,
  type PhasePrefix,
  transcriptKey,
} from "../run/keys.ts";
import { readRun } from "../run/run-record.ts";
import { readJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { openStore } from "../store/open-store.ts";
import { readHashed } from "../store/read-hashed.ts";
import { decodeChunks } from "../trajectory/chunk.ts";
import { writeOut } from "./output.ts";
import { ownVersion } from "./own-version.ts";
import { parseNumber, parsePositiveCount } from "./parse-count.ts";
import { storeOption } from "./store-option.ts";

interface ExportOptions {
  readonly local: string;
  readonly iteration: number;
  readonly evaluation?: string;
  readonly out?: string;
}

export function addEpisodeCommand(program: Command): void {
  program
    .command("episode")
    .description("recorded episodes")
    .command("export")
    .description("write an episode in the form that other programs read")
    .argument("<run>", "name of the run")
    .argument("<episode>", "its number in the iteration", parseNumber)
    .addOption(storeOption())
    .option("--iteration <n>", "iteration it belongs to, counted from 1 as on screen", parsePositiveCount, 1)
    .option("--evaluation <name>", "evaluation it belongs to, instead of an iteration")
    .addOption(new Option("--format <format>", "form").choices(["atif"]).default("atif"))
    .option("--out <file>", "file to write; stdout when left out")
    .addHelpText("after", "\natif: the Agent Trajectory Interchange Format, version 1.8, as Harbor reads it.")
    .action(async (run: string, episode: number, options: ExportOptions) => {
      const store = await openStore(options.local, "read");
      const { evaluation, iteration, out } = options;
      const phase =
        evaluation === undefined ? iterationPrefix(run, iteration - 1) : evaluationPrefix(run, evaluation);
      const text = await exportAtif(store, run, phase, episode);
      if (out === undefined) process.stdout.write(text);
      else await writeOut(out, text);
    });
}

async function exportAtif(
  store: ObjectStore,
  run: string,
  phase: PhasePrefix,
  episode: number,
): Promise<string> {
  const { config } = await readRun(store, run);
  const prefix = episodePrefix(phase, episode);
  const attempt = await readAdmitted(store, prefix);
  if (attempt === undefined) {
    throw new InputError({
      what: "no such episode, or it has not ended",
      where: `${store.url}/${prefix}`,
      expected: "an episode whose attempt was admitted",
      fix: "check the run, --iteration or --evaluation, and the episode's number",
    });
  }
  const at = attemptPrefix(prefix, attempt);
  const record = await readEpisodeRecord(store, at);
  const arrays =
    record.arraysSha256 === undefined
      ? undefined
      : await readHashed(store, arraysKey(at), record.arraysSha256, "not the trajectory of the episode");
  const transcript = await readJsonLines(store, transcriptKey(at), TranscriptTurn);
  const turnCount = transcript.filter(({ purpose }) => purpose === undefined).length;
  if (turnCount !== record.turnCount)
    throw new InputError({
      what: "not the whole transcript of the episode",
      where: transcriptKey(at),
      expected: `expected ${record.turnCount} turns, got ${turnCount}`,
      fix: "restore the object from a copy",
    });
  const trajectory = toAtif({
    sessionId: `${prefix.replaceAll("/", "-")}${attempt}`,
    version: ownVersion(),
    protocol: config.agent.protocol,
    modelName: `${run} version ${record.policyVersion}`,
    transcript,
    chunks: arrays === undefined ? [] : decodeChunks(arrays, arraysKey(at)),
    endReason: record.endReason,
  });
  if (trajectory === undefined) {
    throw new InputError({
      what: "nothing was sampled in this episode",
      where: at,
      expected: "an answer; ATIF has no empty trajectory",
      fix: "choose another episode",
    });
  }
  return `${JSON.stringify(trajectory, undefined, 2)}\n`;
}
