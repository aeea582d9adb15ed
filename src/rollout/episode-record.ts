// The record of an attempt, which says itself of which one it is.
import { InputError } from "../failure/errors.ts";
import { type AttemptPrefix, episodeKey, parseAttempt } from "../run/keys.ts";
import { EpisodeRecord } from "../run/records.ts";
import { parseJson, readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";

/** @throws as `parseEpisodeRecord`, and InputError when there is none */
export async function readEpisodeRecord(store: ObjectStore, at: AttemptPrefix): Promise<EpisodeRecord> {
  return assertOwn(await readJson(store, episodeKey(at), EpisodeRecord), at);
}

/** @throws InputError for a record that belongs elsewhere: its results would be those of another episode */
export function parseEpisodeRecord(body: Uint8Array, at: AttemptPrefix): EpisodeRecord {
  return assertOwn(parseJson(body, episodeKey(at), EpisodeRecord), at);
}

function assertOwn(record: EpisodeRecord, at: AttemptPrefix): EpisodeRecord {
  const { episode, attempt } = parseAttempt(at);
  if (record.episode === episode && record.attempt === attempt) return record;
  throw new InputError({
    what: "the record of another episode",
    where: episodeKey(at),
    expected: `expected episode ${episode}, attempt ${attempt}, got episode ${record.episode}, attempt ${record.attempt}`,
    fix: "restore the object from a copy",
  });
}
