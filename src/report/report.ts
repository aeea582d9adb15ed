// Makes the text of a report from a run in a store.
import type { ObjectStore } from "../store/object-store.ts";
import { chooseEpisodes } from "./choose-episodes.ts";
import { page } from "./page.ts";
import { readEpisodes, readRunText } from "./read-episodes.ts";
import { readRunData } from "./read-run.ts";

export interface Report {
  /** One self-contained HTML document. */
  readonly text: string;
  readonly iterationCount: number;
  readonly evaluationCount: number;
  readonly episodeCount: number;
  /** Episodes that would have made the file too large. */
  readonly leftOutCount: number;
  readonly problems: readonly string[];
}

/**
 * Reads a run, also while it is at work or when it is damaged. The same store gives the same bytes.
 *
 * @throws InputError when there is no such run, or its run.json or state.json cannot be read
 */
export async function makeReport(store: ObjectStore, run: string): Promise<Report> {
  const data = await readRunData(store, run);
  const episodes = await readEpisodes(store, chooseEpisodes(data));
  const text =
    data.policyFolder === undefined || episodes.length === 0
      ? undefined
      : await readRunText(data.policyFolder, data.record.config);
  const made = page(data, episodes, text);
  return {
    text: made.text,
    iterationCount: data.iterations.length,
    evaluationCount: data.evaluations.reduce((sum, { evaluations }) => sum + evaluations.length, 0),
    episodeCount: made.shownCount,
    leftOutCount: made.leftOutCount,
    problems: data.problems,
  };
}
