// The sampled episodes: a table, then each as a foldable part, as far as the file has room.
import { anchorOf, drawEpisode, type EpisodeLimits, outcome } from "./episode.ts";
import { count, decimals, plural } from "./format.ts";
import { type Html, html, sizeBytesOf } from "./html.ts";
import type { EpisodeData, RunText } from "./read-episodes.ts";
import type { Readable } from "./read-parts.ts";
import { table } from "./table.ts";
import { tokenLegend } from "./token-strip.ts";
import { shorten } from "./visible-text.ts";

/** An episode that does not fit into the rest of the file is drawn with tighter limits. */
const LEVELS: readonly EpisodeLimits[] = [
  { instruction: 6000, answer: 4000, observation: 4000, turns: 60, tests: 100, tokens: 1600 },
  { instruction: 2000, answer: 600, observation: 600, turns: 20, tests: 30, tokens: 300 },
];

export interface EpisodesPart {
  readonly section: Html;
  readonly shownCount: number;
  readonly leftOutCount: number;
}

/** @param roomBytes approximate limit of the section */
export function episodes(
  list: readonly EpisodeData[],
  text: Readable<RunText> | undefined,
  roomBytes: number,
): EpisodesPart {
  if (list.length === 0)
    return {
      section: html`<section id="episodes"><h2>Sampled episodes</h2><p class="empty">No episode has ended yet.</p></section>`,
      shownCount: 0,
      leftOutCount: 0,
    };
  const runText = text?.kind === "read" ? text.value : undefined;
  let left = roomBytes;
  const drawn = list.map((episode, index) => {
    // Small episodes leave their room to those after them; a huge one takes no other's.
    const room = left / (list.length - index);
    const markup = LEVELS.map(limits => drawEpisode(episode, runText, limits)).find(
      one => sizeBytesOf(one) <= room,
    );
    left -= markup === undefined ? 0 : sizeBytesOf(markup);
    return markup;
  });
  const leftOutCount = drawn.filter(one => one === undefined).length;
  return {
    section: html`<section id="episodes"><h2>Sampled episodes</h2>
<p class="lead">Chosen by the run's seed, not by looks: from the start, the middle and the end of training, of each outcome there${list.some(({ phase }) => phase.includes("/evaluations/")) && "; and from an evaluation one task that was won and one that was lost, before and after"}. Text is shown as it was; characters that would hide or reorder it are written out.</p>
${text?.kind === "unreadable" && html`<p class="notice">Tokens are shown by their ids: ${shorten(text.problem)}</p>`}
${indexTable(list, drawn)}${tokenLegend()}
${leftOutCount > 0 && html`<p class="notice">${plural(leftOutCount, "episode")} left out: the report would become too large.</p>`}
${drawn}</section>`,
    shownCount: list.length - leftOutCount,
    leftOutCount,
  };
}

function indexTable(list: readonly EpisodeData[], drawn: readonly (Html | undefined)[]): Html {
  return table(
    [
      { name: "episode" },
      { name: "why it is here" },
      { name: "task", long: true },
      { name: "outcome" },
      { name: "reward", number: true },
      { name: "tests", number: true },
      { name: "turns", number: true },
      { name: "tokens", number: true },
      { name: "end" },
    ],
    list.map((episode, index) => {
      const { entry, place, why } = episode;
      const name = `${place} · ${entry.episode}`;
      return [
        drawn[index] === undefined ? name : html`<a href="#${anchorOf(episode)}">${name}</a>`,
        why,
        entry.task,
        outcome(entry.resolved),
        decimals(entry.reward, 3),
        `${entry.passed}/${entry.total}`,
        count(entry.turnCount),
        count(entry.tokenCount),
        entry.endReason.replace("_", " "),
      ];
    }),
  );
}
