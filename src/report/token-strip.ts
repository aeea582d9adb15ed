// Draws every token of a chunk as a small box: sampled tokens in a colour by their probability, others in grey.
import type { Chunk } from "../trajectory/chunk.ts";
import { count, decimals, percent } from "./format.ts";
import { type Html, html } from "./html.ts";
import type { TokenTexts } from "./token-text.ts";

/** Classes of the style sheet by the probability that the sampler gave the token, from likely to surprising. */
const PROBABILITY_CLASSES: readonly (readonly [atLeast: number, name: string, label: string])[] = [
  [0.99, "p0", "99 % or more"],
  [0.9, "p1", "90 %"],
  [0.5, "p2", "50 %"],
  [0.1, "p3", "10 %"],
  [0.01, "p4", "1 %"],
  [0, "p5", "less than 1 %"],
];

/** A position that is long ago: head and tail of a longer chunk are shown. */
export function tokenStrip(
  { tokens, mask, logProbs }: Chunk,
  texts: TokenTexts | undefined,
  limit: number,
): Html {
  const total = tokens.length;
  const headEnd = total <= limit ? total : limit - Math.floor(limit / 3);
  const tailStart = total <= limit ? total : total - Math.floor(limit / 3);
  const draw = (start: number, end: number): Html[] =>
    Array.from({ length: end - start }, (_, index) =>
      token(
        start + index,
        tokens[start + index],
        mask[start + index] === 1 ? logProbs[start + index] : undefined,
        texts,
      ),
    );
  return html`<p class="tokens">${draw(0, headEnd)}${tailStart > headEnd && html`<b class="cut"> … ${count(tailStart - headEnd)} tokens left out … </b>`}${draw(tailStart, total)}</p>`;
}

/** Explains the colours. */
export function tokenLegend(): Html {
  return html`<p class="legend tokens"><i>given</i> sampled with a probability of at least ${PROBABILITY_CLASSES.map(
    ([, name, label]) => html`<i class="${name}">${label}</i> `,
  )}</p>`;
}

function token(
  position: number,
  id: number,
  logProb: number | undefined,
  texts: TokenTexts | undefined,
): Html {
  const text = texts?.one(id) ?? `${id} `;
  // A newline breaks the line after its box.
  const shown = text.replaceAll("\n", "⏎");
  const breaks = text.split("\n").length - 1;
  const kind = texts?.isSpecial(id) === true ? " sp" : "";
  if (logProb === undefined)
    return html`<i class="g${kind}" title="#${position} id ${id}">${shown}</i>${"\n".repeat(breaks)}`;
  const probability = Math.exp(logProb);
  return html`<i class="${probabilityClass(probability)}${kind}" title="#${position} id ${id}
log p ${Number.isFinite(logProb) ? decimals(logProb, 4) : "none"}, p ${Number.isFinite(probability) ? percent(probability) : "none"}">${shown}</i>${"\n".repeat(breaks)}`;
}

function probabilityClass(probability: number): string {
  return PROBABILITY_CLASSES.find(([atLeast]) => probability >= atLeast)?.[1] ?? "p5";
}
