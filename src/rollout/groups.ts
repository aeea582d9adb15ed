// The episodes of a phase in groups, one driver each. Only episodes that have no finished attempt yet are grouped, so
// that a phase which is run again starts drivers for what is missing and for nothing else. Of a closed phase nothing is:
// what failed in it has failed.
import { z } from "zod";
import { sha256 } from "../files/sha256.ts";
import { closedKey, episodePrefix, type PhasePrefix } from "../run/keys.ts";
import { encodeJsonLines } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { putOnce } from "../store/write-once.ts";
import { readPlan } from "./plan.ts";
import { readAttempts } from "./score.ts";

/** One line of the list of groups: a few hundred bytes, since it becomes the input of an execution. */
export const EpisodeGroup = z.strictObject({
  run: z.string(),
  phase: z.string(),
  group: z.int().nonnegative(),
  /** Numbers of episodes, with commas: as an environment variable carries them. */
  episodes: z.string().regex(/^\d+(,\d+)*$/),
  policyVersion: z.int().nonnegative(),
});
export type EpisodeGroup = z.infer<typeof EpisodeGroup>;

/**
 * With overlap, an iteration's episodes are played while the policy before it is still trained: by the version before
 * that. A function of the iteration alone, so that an episode which is repeated later is played by the same version.
 */
export function samplingVersion(iteration: number, overlap: boolean): number {
  return overlap ? Math.max(0, iteration - 1) : iteration;
}

export interface GroupsOutput {
  /** Named by its content: what is missing differs from one time to the next. */
  readonly groupsKey: string;
  readonly groupCount: number;
}

export async function writeGroups(
  {
    run,
    phase,
    size,
    policyVersion,
  }: {
    readonly run: string;
    readonly phase: PhasePrefix;
    readonly size: number;
    readonly policyVersion: number;
  },
  { store }: { readonly store: ObjectStore },
): Promise<GroupsOutput> {
  const plan = await readPlan(store, phase);
  const finished = await Promise.all(
    plan.map(async ({ episode }) =>
      (await readAttempts(store, episodePrefix(phase, episode))).some(record => record.failure === undefined),
    ),
  );
  const isClosed = (await store.head(closedKey(phase))) !== undefined;
  const missing = plan.filter((_, index) => !isClosed && !finished[index]).map(({ episode }) => episode);
  const groups = Array.from({ length: Math.ceil(missing.length / size) }, (_, group): EpisodeGroup => {
    const episodes = missing.slice(group * size, (group + 1) * size).join(",");
    return { run, phase, group, episodes, policyVersion };
  });
  const body = encodeJsonLines(groups);
  const groupsKey = `${phase}groups/${sha256(body).slice(0, 16)}.jsonl`;
  await putOnce(store, groupsKey, body);
  return { groupsKey, groupCount: groups.length };
}
