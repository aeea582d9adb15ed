// Reads the chosen episodes as their attempts recorded them. A part that cannot be read becomes a message in its place.
import { chatOptions } from "../agent/find-protocol.ts";
import { TranscriptTurn } from "../agent/transcript.ts";
import type { RunConfig } from "../config/run-config.ts";
import type { FileSet } from "../files/content.ts";
import { readJsonFile, TOKENIZER_FILES } from "../model/checkpoint.ts";
import { readTextFormat } from "../model/model-folder.ts";
import { readEpisodeRecord } from "../rollout/episode-record.ts";
import { arraysKey, attemptPrefix, episodePrefix, transcriptKey } from "../run/keys.ts";
import type { EpisodeRecord } from "../run/records.ts";
import { readJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readHashed } from "../store/read-hashed.ts";
import { type Chunk, decodeChunks } from "../trajectory/chunk.ts";
import { computeReceipt } from "../trajectory/receipt.ts";
import { sliceRoutes } from "../trajectory/routes.ts";
import type { ChosenEpisode } from "./choose-episodes.ts";
import { mapSome, type Readable, tryRead } from "./read-parts.ts";
import { TokenTexts } from "./token-text.ts";

export interface EpisodeData extends ChosenEpisode {
  readonly record: Readable<EpisodeRecord>;
  readonly transcript: Readable<readonly TranscriptTurn[]>;
  /** Empty when nothing was sampled. */
  readonly chunks: Readable<readonly Chunk[]>;
}

export async function readEpisodes(
  store: ObjectStore,
  chosen: readonly ChosenEpisode[],
): Promise<EpisodeData[]> {
  return mapSome(chosen, async episode => {
    const { phase, entry } = episode;
    const at = attemptPrefix(episodePrefix(phase, entry.episode), entry.attempt);
    const [record, transcript, chunks] = await Promise.all([
      tryRead(() => readEpisodeRecord(store, at)),
      tryRead(() => readJsonLines(store, transcriptKey(at), TranscriptTurn)),
      tryRead(() => readChunks(store, arraysKey(at), entry.arraysSha256)),
    ]);
    return { ...episode, record, transcript, chunks };
  });
}

async function readChunks(
  store: ObjectStore,
  key: string,
  expectedSha256: string | undefined,
): Promise<readonly Chunk[]> {
  if (expectedSha256 === undefined) return [];
  return decodeChunks(
    await readHashed(store, key, expectedSha256, "not the trajectory that was closed"),
    key,
  );
}

/** Recomputes a turn's receipt from the stored tensors. @returns whether it agrees */
export function receiptAgrees({ tokens, logProbs, routes, turns }: Chunk, turnIndex: number): boolean {
  const { start, end, routesStart, policyVersion, receipt } = turns[turnIndex];
  const inside = 0 < start && start < end && end <= tokens.length;
  if (!inside || routesStart < 0 || routesStart > end - 1) return false;
  if (routes !== undefined && end - 1 > routes.rowCount) return false;
  const made = computeReceipt({
    prompt: tokens.subarray(0, start),
    sampled: tokens.subarray(start, end),
    logProbs: logProbs.subarray(start, end),
    routes: routes && sliceRoutes(routes, routesStart, end - 1),
    policyVersion,
  });
  return Buffer.from(made).equals(receipt);
}

/** Tokenizer and opening, to show token ids as text. */
export interface RunText {
  readonly texts: TokenTexts;
  /** Ids of a conversation's opening before and after the instruction; missing when the chat template cannot be used. */
  readonly opening?: readonly number[];
}

/** Reads tokenizer and chat template of a policy folder, and not its weights. */
export async function readRunText(
  files: FileSet,
  { agent }: Pick<RunConfig, "agent">,
): Promise<Readable<RunText>> {
  return tryRead(async () => {
    const [tokenizerFile] = TOKENIZER_FILES;
    const texts = new TokenTexts(await readJsonFile(files, tokenizerFile), files.where + tokenizerFile);
    const chat = await tryRead(async () =>
      (await readTextFormat(files, chatOptions(agent))).chat.opening(""),
    );
    return chat.kind === "read" ? { texts, opening: chat.value } : { texts };
  });
}

/**
 * The task's instruction in the tokens before the first answer: what stands between the fixed parts of the chat
 * template, or all of them where those are not found.
 */
export function instructionTokens(prompt: Int32Array, opening: readonly number[] | undefined): Int32Array {
  if (opening === undefined || prompt.length < opening.length) return prompt;
  let before = 0;
  while (before < opening.length && prompt[before] === opening[before]) before++;
  const after = opening.length - before;
  const isWhole = opening.slice(before).every((id, index) => prompt[prompt.length - after + index] === id);
  return isWhole ? prompt.subarray(before, prompt.length - after) : prompt;
}
