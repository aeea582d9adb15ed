// Shows text of a policy, a terminal or a task unchanged, with hidden characters marked and its length limited.
import { count } from "./format.ts";
import { type Html, html } from "./html.ts";
import { cutText, splitHidden } from "./visible-text.ts";

/** @param limit UTF-16 units that are shown */
export function foreignText(text: string, limit: number): Html {
  const { head, tail, omitted } = cutText(text, limit);
  return html`${marked(head)}${omitted > 0 && html`<b class="cut"> … ${count(omitted)} characters left out … </b>`}${marked(tail)}`;
}

function marked(text: string): readonly (Html | string)[] {
  return splitHidden(text).map(piece => (piece.hidden ? html`<b class="c">${piece.text}</b>` : piece.text));
}
