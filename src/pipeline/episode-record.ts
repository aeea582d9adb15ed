// The record of an attempt, which says itself of which one it is.
import { InputError } from "../failure/errors.ts";
import { parseJson } from "../store/json.ts";
import { type AttemptPrefix, episodeKey, parseAttempt } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { EpisodeRecord } from "./records.ts";

/** @throws as `parseEpisodeRecord`, and InputError when there is none */
export async function readEpisodeRecord(store: ObjectStore, at: AttemptPrefix): Promise<EpisodeRecord> {
  const key = episodeKey(at);
  const found = await store.get(key);
  if (found !== undefined) return parseEpisodeRecord(found.body, at);
  throw new InputError({ what: "missing object", where: key, expected: `expected it in ${store.url}` });
}

/** @throws InputError for a record that belongs elsewhere: its results would be those of another episode */
export function parseEpisodeRecord(body: Uint8Array, at: AttemptPrefix): EpisodeRecord {
  const key = episodeKey(at);
  const record = parseJson(body, key, EpisodeRecord);
  const { episode, attempt } = parseAttempt(at);
  if (record.episode === episode && record.attempt === attempt) return record;
  throw new InputError({
    what: "the record of another episode",
    where: key,
    expected: `expected episode ${episode}, attempt ${attempt}, got episode ${record.episode}, attempt ${record.attempt}`,
    fix: "restore the object from a copy",
  });
}
