// Which attempts of an episode there are, and which one counts. An attempt's number is claimed before anything of it
// is written, so that a retry never writes into a folder that a dying attempt still writes to; of the attempts that
// finished, the first that is admitted counts.
import { z } from "zod";
import { InvariantError } from "../failure/errors.ts";
import { ProcessIdentity } from "../files/process-identity.ts";
import { encodeJson, parseJson, readJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import {
  type AttemptPrefix,
  admittedKey,
  attemptPrefix,
  claimKey,
  type EpisodePrefix,
  episodeKey,
  parseAttempt,
} from "./keys.ts";

/** `claim.json`: who began the attempt, and when (Unix time in ms). */
export const Claim = z.strictObject({
  holder: z.string().min(1),
  /** Missing when the holder is no process that could be looked for. */
  process: ProcessIdentity.optional(),
  claimedAtMs: z.int(),
});
export type Claim = z.infer<typeof Claim>;

const Admission = z.strictObject({ attempt: z.int().positive() });

/** Takes the next free attempt number of the episode; of several processes each gets its own. @returns from 1 */
export async function claimAttempt(
  store: ObjectStore,
  episode: EpisodePrefix,
  claim: Claim,
): Promise<number> {
  const last = (await listAttempts(store, episode)).at(-1) ?? 0;
  for (let attempt = last + 1; ; attempt++) {
    const key = claimKey(attemptPrefix(episode, attempt));
    if ((await store.put(key, encodeJson(claim), { ifNoneMatch: "*" })).written) return attempt;
  }
}

/** @throws InputError when there is no such attempt */
export function readClaim(store: ObjectStore, attempt: AttemptPrefix): Promise<Claim> {
  return readJson(store, claimKey(attempt), Claim);
}

/**
 * Lets an attempt count, unless another one does already.
 *
 * @returns the attempt that counts, now and for ever
 * @throws InvariantError when the attempt has no `episode.json`: it did not happen
 */
export async function admit(store: ObjectStore, episode: EpisodePrefix, attempt: number): Promise<number> {
  const record = episodeKey(attemptPrefix(episode, attempt));
  if ((await store.head(record)) === undefined)
    throw new InvariantError("an attempt that did not happen would count", { missing: record });
  const key = admittedKey(episode);
  if ((await store.put(key, encodeJson({ attempt }), { ifNoneMatch: "*" })).written) return attempt;
  return (await readJson(store, key, Admission)).attempt;
}

/** @returns undefined when no attempt counts (yet) */
export async function readAdmitted(store: ObjectStore, episode: EpisodePrefix): Promise<number | undefined> {
  const key = admittedKey(episode);
  const found = await store.get(key);
  return found === undefined ? undefined : parseJson(found.body, key, Admission).attempt;
}

/** Numbers of the attempts that were begun, in order. */
export async function listAttempts(store: ObjectStore, episode: EpisodePrefix): Promise<number[]> {
  const names = await Array.fromAsync(store.folders(episode));
  return names.map(name => parseAttempt(`${episode}${name}/`).attempt);
}
