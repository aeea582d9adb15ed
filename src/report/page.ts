// The whole document. Nothing in it can run, load or send anything: the policy below forbids it to the browser, and
// html.ts keeps such markup out.
import { createHash } from "node:crypto";
import { curves } from "./curves.ts";
import { type EpisodesPart, episodes } from "./episodes.ts";
import { evaluations } from "./evaluations.ts";
import { foreignText } from "./foreign-text.ts";
import { trainingGroups } from "./groups.ts";
import { head } from "./head.ts";
import { type Html, html, sizeBytesOf, styleElement } from "./html.ts";
import type { EpisodeData, RunText } from "./read-episodes.ts";
import type { Readable } from "./read-parts.ts";
import type { RunData } from "./read-run.ts";
import { stageTimes } from "./stage-times.ts";
import { stragglers } from "./stragglers.ts";
import { STYLE } from "./style.ts";
import { shorten } from "./visible-text.ts";

export interface Page {
  readonly text: string;
  readonly shownCount: number;
  readonly leftOutCount: number;
}

/** Browsers, mails and reviews accept a file of this size without trouble. */
const MOST_BYTES = 5_000_000;
/** Bytes for the document around the sections and the table of episodes. */
const RESERVE_BYTES = 100_000;
/** Limits of the settings and messages that are shown. */
const LONGEST_SETTINGS = 20_000;
const MOST_PROBLEMS = 30;
const LONGEST_PROBLEM = 500;

/** Pure: the same run gives the same bytes. */
export function page(run: RunData, list: readonly EpisodeData[], text: Readable<RunText> | undefined): Page {
  const body = [
    head(run),
    curves(run),
    stageTimes(run),
    trainingGroups(run),
    evaluations(run),
    stragglers(run),
  ];
  const end = notes(run);
  const others = sizeBytesOf(html`${body}${end}`) + STYLE.length;
  const sampled: EpisodesPart = episodes(list, text, MOST_BYTES - RESERVE_BYTES - others);
  const document = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
${contentPolicy()}
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
<title>${run.record.run} · t1 run report</title>
${styleElement(STYLE)}</head>
<body>${navigation()}<main>${body}${sampled.section}${end}</main></body></html>
`;
  return { text: document.text, shownCount: sampled.shownCount, leftOutCount: sampled.leftOutCount };
}

/** Allows the one style sheet by its hash and forbids to load, run or send anything else. */
function contentPolicy(): Html {
  const hash = createHash("sha256").update(STYLE).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`;
  return html`<meta http-equiv="Content-Security-Policy" content="${policy}">`;
}

const SECTIONS = [
  ["curves", "Curves"],
  ["time", "Time"],
  ["groups", "Groups"],
  ["evaluations", "Evaluations"],
  ["episodes", "Episodes"],
  ["notes", "Settings"],
] as const;

function navigation(): Html {
  return html`<nav>${SECTIONS.map(([id, name]) => html`<a href="#${id}">${name}</a>`)}</nav>`;
}

function notes({ record, problems }: RunData): Html {
  const shown = problems.slice(0, MOST_PROBLEMS);
  const { changes = [] } = record;
  const { node, platform, cpu, ...engine } = record.software;
  const computes = Object.entries(engine).map(([name, version]) => `, ${name} ${version}`);
  return html`<section id="notes"><h2>Settings and notes</h2>
<p class="lead">Made with Node ${node}${foreignText(computes.join(""), LONGEST_PROBLEM)} on ${platform}, ${shorten(cpu)}.</p>
${shown.length > 0 && html`<h3>Could not be read</h3><ul>${shown.map(problem => html`<li class="problem">${foreignText(problem, LONGEST_PROBLEM)}</li>`)}</ul>`}
${
  changes.length > 0 &&
  html`<h3>Changed in the run</h3><ul>${changes.map(
    ({ key, old, new: now, iteration }) =>
      html`<li>From iteration ${iteration + 1} on: ${foreignText(`${key}: ${old ?? "not set"}, then ${now}`, LONGEST_PROBLEM)}</li>`,
  )}</ul>`
}
${problems.length > shown.length && html`<p class="omitted">and ${problems.length - shown.length} more</p>`}
<details><summary>Every setting of the run</summary><pre class="settings">${foreignText(JSON.stringify(record.config, undefined, 2), LONGEST_SETTINGS)}</pre></details></section>`;
}
