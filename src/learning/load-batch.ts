// The closed episodes of an iteration as training reads them: bytes checked against the hashes of the closed list.
import { arraysKey, attemptPrefix, episodePrefix, type PhasePrefix } from "../run/keys.ts";
import type { ClosedEpisode, ClosedPhase } from "../run/records.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readHashed } from "../store/read-hashed.ts";
import type { TrainingEpisode } from "../training/episode.ts";
import { decodeChunks } from "../trajectory/chunk.ts";

/** Chunks that are not to be trained, and episodes that have no other, are left out. */
export async function loadBatch(
  store: ObjectStore,
  phase: PhasePrefix,
  closed: ClosedPhase,
): Promise<TrainingEpisode[]> {
  const loaded = await Promise.all(closed.episodes.map(entry => loadEpisode(store, phase, entry)));
  return loaded.filter(episode => episode.chunks.length > 0);
}

async function loadEpisode(
  store: ObjectStore,
  phase: PhasePrefix,
  entry: ClosedEpisode,
): Promise<TrainingEpisode> {
  const { episode, attempt, endReason, reward, arraysSha256 } = entry;
  const id = `${episode}`;
  if (arraysSha256 === undefined) return { id, chunks: [], endReason, reward };
  const key = arraysKey(attemptPrefix(episodePrefix(phase, episode), attempt));
  const body = await readHashed(
    store,
    key,
    arraysSha256,
    "a trajectory changed after its iteration was closed; nothing was trained",
  );
  const chunks = decodeChunks(body, key).filter(chunk => !chunk.untrained);
  return { id, chunks, endReason, reward };
}
