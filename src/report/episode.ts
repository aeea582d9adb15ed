// Draws one sampled episode as a foldable part: its facts, turns, tests and tokens.
import type { TranscriptTurn } from "../agent/transcript.ts";
import { END_REASONS, type EndReason } from "../failure/end-reason.ts";
import type { EpisodeRecord } from "../run/records.ts";
import type { Chunk } from "../trajectory/chunk.ts";
import { VERIFIER_CAUSES } from "../verifier/report.ts";
import { TAMPER_KINDS } from "../verifier/tampering.ts";
import { foreignText } from "./foreign-text.ts";
import { count, decimals, duration, moment, plural } from "./format.ts";
import { type Html, html } from "./html.ts";
import { type EpisodeData, instructionTokens, type RunText, receiptAgrees } from "./read-episodes.ts";
import type { Readable } from "./read-parts.ts";
import { tokenStrip } from "./token-strip.ts";
import { shorten } from "./visible-text.ts";

/** Limits of the shown parts of an episode. */
export interface EpisodeLimits {
  readonly instruction: number;
  readonly answer: number;
  readonly observation: number;
  readonly turns: number;
  readonly tests: number;
  readonly tokens: number;
}

export function drawEpisode(episode: EpisodeData, text: RunText | undefined, limits: EpisodeLimits): Html {
  const { entry, place, why, record, transcript, chunks } = episode;
  const recorded = chunks.kind === "read" ? recordedTurns(chunks.value) : [];
  return html`<details class="episode"><summary><b>${place} · episode ${entry.episode}</b> ${outcome(entry.resolved)} <span>reward ${decimals(entry.reward, 3)}</span> <span>${plural(entry.turnCount, "turn")}</span> <span class="dim">${shorten(entry.task)}</span></summary>
<div class="inside" id="${anchorOf(episode)}">
${factList(episode, why, record)}
${[record, transcript, chunks].map(part => part.kind === "unreadable" && html`<p class="notice">A part of this episode cannot be shown: ${shorten(part.problem)}</p>`)}
${instruction(recorded[0], text, limits)}
${transcript.kind === "read" && turns(transcript.value, recorded, entry.endReason, limits)}
${record.kind === "read" && verdict(record.value, limits)}
${chunks.kind === "read" && chunks.value.map((one, index) => chunkTokens(one, index, chunks.value.length, text, limits))}
</div></details>
`;
}

function factList({ entry, version }: EpisodeData, why: string, record: Readable<EpisodeRecord>): Html {
  const labels = Object.entries(entry.labels).map(
    ([name, value]) => `${name} ${Array.isArray(value) ? value.join(" + ") : value}`,
  );
  const facts: (readonly [string, string | Html])[] = [
    ["chosen as", why],
    ["ended", `${entry.endReason.replace("_", " ")}: ${END_REASONS[entry.endReason]}`],
    ["policy", `version ${version}`],
    ["task", html`${shorten(entry.task)} <span class="dim">${shorten(labels.join(", "))}</span>`],
  ];
  if (record.kind === "read") {
    const { startedAt, attempt, times } = record.value;
    facts.push(
      ["attempt", `${attempt}, ${moment(startedAt)}`],
      [
        "time",
        `${duration(times.totalMs)}: sampler ${duration(times.samplerMs)}, commands ${duration(times.commandMs)}, tests ${duration(times.verifierMs)}`,
      ],
    );
  }
  return html`<dl>${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A turn of the transcript as its chunk recorded it: the turns of all chunks in order. */
interface RecordedTurn {
  readonly chunk: Chunk;
  /** In its chunk. */
  readonly index: number;
}

function recordedTurns(chunks: readonly Chunk[]): RecordedTurn[] {
  return chunks.flatMap(chunk => chunk.turns.map((_, index) => ({ chunk, index })));
}

function instruction(
  first: RecordedTurn | undefined,
  text: RunText | undefined,
  limits: EpisodeLimits,
): Html | undefined {
  if (first === undefined || text === undefined) return undefined;
  const { tokens, turns } = first.chunk;
  const given = instructionTokens(tokens.subarray(0, turns[first.index].start), text.opening);
  return html`<h4>Instruction</h4><pre class="instruction">${foreignText(text.texts.all(given), limits.instruction)}</pre>`;
}

function turns(
  list: readonly TranscriptTurn[],
  recorded: readonly RecordedTurn[],
  endReason: EndReason,
  limits: EpisodeLimits,
): Html {
  const shown = list.slice(0, limits.turns);
  return html`<h4>Turns</h4><ol class="turns">${shown.map(
    (turn, index) =>
      html`<li><div class="answer"><pre>${foreignText(turn.answer, limits.answer)}</pre>${meta(turn, recorded[index])}</div>${observation(turn, index + 1 < list.length, endReason, limits)}</li>`,
  )}</ol>${list.length > shown.length && html`<p class="omitted">${plural(list.length - shown.length, "more turn")} left out</p>`}`;
}

function observation(
  { observation: text }: TranscriptTurn,
  wasRead: boolean,
  endReason: EndReason,
  limits: EpisodeLimits,
): Html | undefined {
  if (text === undefined) return undefined;
  const block = html`<pre class="observation${wasRead ? "" : " unread"}">${foreignText(text, limits.observation)}</pre>`;
  if (wasRead) return block;
  return html`${block}<p class="dim">The episode ended here (${endReason.replace("_", " ")}): the policy did not read this.</p>`;
}

function meta(turn: TranscriptTurn, recorded: RecordedTurn | undefined): Html {
  const facts = [plural(turn.end - turn.start, "token"), `sampler ${duration(turn.samplerMs)}`];
  if (turn.commandMs !== undefined) facts.push(`command ${duration(turn.commandMs)}`);
  if (turn.result !== undefined) facts.push(endOf(turn.result));
  return html`<p class="meta">${facts.map(fact => html`<span>${fact}</span>`)}${recorded && receipt(recorded)}</p>`;
}

function receipt({ chunk, index }: RecordedTurn): Html {
  const { policyVersion, receipt: bytes } = chunk.turns[index];
  const hex = Buffer.from(bytes).toString("hex");
  const verdict = receiptAgrees(chunk, index)
    ? html`<b class="good">agrees</b>`
    : html`<b class="bad">does not agree</b>`;
  return html`<span>v${policyVersion}</span><span title="${hex}">receipt ${hex.slice(0, 10)}… ${verdict}</span>`;
}

function endOf(result: NonNullable<TranscriptTurn["result"]>): string {
  switch (result.kind) {
    case "exited":
      return `exit ${result.exitCode}`;
    case "signalled":
      return `killed by ${result.signal}`;
    case "timed-out":
      return `timed out after ${duration(result.limitMs)}`;
    default:
      return result satisfies never;
  }
}

/** The agent chose these paths, so they are shown with hidden characters marked. */
function evidence(tampering: EpisodeRecord["tampering"]): Html | undefined {
  if (tampering === undefined) return undefined;
  const { found, moreCount } = tampering;
  return html`<p class="notice">Found in places from which an agent reaches into its verifier:</p><ul class="tests">${found.map(
    ({ kind, path, change, effect }) =>
      html`<li class="bad"><b>${change}</b> <code>${foreignText(path, 300)}</code> ${TAMPER_KINDS[kind]}; ${effect === "left_out" ? "the tests ran without it" : "it was there while the tests ran"}</li>`,
  )}</ul>${moreCount > 0 && html`<p class="omitted">${plural(moreCount, "more path")} left out</p>`}`;
}

function verdict({ report, failure, tampering }: EpisodeRecord, limits: EpisodeLimits): Html | undefined {
  if (failure !== undefined)
    return html`<p class="notice">${failure.layer}: ${failure.name}: ${shorten(failure.detail)}</p>`;
  if (report === undefined) return undefined;
  const shown = report.tests.slice(0, limits.tests);
  return html`<h4>Tests</h4>
${report.cause !== undefined && html`<p class="notice">${VERIFIER_CAUSES[report.cause]}</p>`}
${evidence(tampering)}
<ul class="tests">${shown.map(
    ({ name, status }) =>
      html`<li class="${status === "passed" ? "good" : "bad"}"><b>${status}</b> ${shorten(name)}</li>`,
  )}</ul>${report.tests.length > shown.length && html`<p class="omitted">${plural(report.tests.length - shown.length, "more test")} left out</p>`}
<p class="dim">outcome ${report.outcome ?? "none"}, exit ${report.exitCode ?? "none"}, ${duration(report.durationMs)}</p>`;
}

function chunkTokens(
  chunk: Chunk,
  index: number,
  chunkCount: number,
  text: RunText | undefined,
  limits: EpisodeLimits,
): Html {
  const sampled = chunk.mask.reduce((sum, bit) => sum + bit, 0);
  const name = chunkCount === 1 ? "Tokens" : `Tokens of chunk ${index + 1} of ${chunkCount}`;
  return html`<details class="chunk"><summary>${name}: ${count(chunk.tokens.length)}, ${count(sampled)} sampled</summary>${tokenStrip(chunk, text?.texts, limits.tokens)}</details>`;
}

export function outcome(resolved: boolean): Html {
  return resolved ? html`<b class="good">resolved</b>` : html`<b class="bad">not resolved</b>`;
}

/** The anchor lies inside the fold, so that a link to it opens the fold. */
export function anchorOf({ phase, entry }: EpisodeData): string {
  return `${phase.replace(/^runs\/[^/]+\//, "").replaceAll("/", "-")}${entry.episode}`;
}
