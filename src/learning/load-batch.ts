// The closed episodes of an iteration as training reads them: bytes checked against the hashes of the closed list.
import { arraysKey, attemptPrefix, episodePrefix, type PhasePrefix } from "../run/keys.ts";
import type { ClosedEpisode, ClosedPhase } from "../run/records.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { readHashed } from "../store/read-hashed.ts";
import { type Batch, type TrainingEpisode, toBatch } from "../training/batch.ts";
import { type Chunk, decodeChunks } from "../trajectory/chunk.ts";

interface LoadedEpisode extends TrainingEpisode {
  /** All chunks in their order, which the audit reads: those that are trained may be forks of those that are not. */
  readonly recorded: readonly Chunk[];
}

interface LoadedBatch extends Batch {
  /** Per episode. */
  readonly recorded: readonly (readonly Chunk[])[];
}

/** Loads the closed episodes. `chunks` are those that are trained; an episode without any is left out. */
export async function loadBatch(
  store: ObjectStore,
  phase: PhasePrefix,
  closed: ClosedPhase,
): Promise<LoadedBatch> {
  const loaded = await Promise.all(closed.episodes.map(entry => loadEpisode(store, phase, entry)));
  const counted = loaded.filter(({ chunks }) => chunks.length > 0);
  return { ...toBatch(counted), recorded: counted.map(({ recorded }) => recorded) };
}

async function loadEpisode(
  store: ObjectStore,
  phase: PhasePrefix,
  entry: ClosedEpisode,
): Promise<LoadedEpisode> {
  const { episode, attempt, task, endReason, reward, arraysSha256 } = entry;
  const id = `${episode}`;
  if (arraysSha256 === undefined) return { id, task, chunks: [], recorded: [], endReason, reward };
  const key = arraysKey(attemptPrefix(episodePrefix(phase, episode), attempt));
  const body = await readHashed(
    store,
    key,
    arraysSha256,
    "a trajectory changed after its iteration was closed; nothing was trained",
  );
  const recorded = decodeChunks(body, key);
  return { id, task, chunks: recorded.filter(chunk => !chunk.untrained), recorded, endReason, reward };
}
