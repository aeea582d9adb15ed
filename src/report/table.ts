// Tables: numbers to the right, wide ones scroll inside their box, long ones say what they leave out.
import { count } from "./format.ts";
import { type Html, html, type Part } from "./html.ts";
import { shorten } from "./visible-text.ts";

export interface TableColumn {
  readonly name: string;
  readonly number?: boolean;
  /** Foreign text that may need several lines. */
  readonly long?: boolean;
}

/** Names of groups and tasks come from foreign files; more rows than this do not help a reader. */
const MOST_ROWS = 60;
const LONGEST_CELL = 160;

/** @param rows one cell per column; the first names the row @param most rows that are shown */
export function table(
  columns: readonly TableColumn[],
  rows: readonly (readonly Part[])[],
  most = MOST_ROWS,
): Html {
  const shown = rows.slice(0, most);
  return html`<div class="scroll"><table><thead><tr>${columns.map(
    ({ name, number }) =>
      html`<th scope="col" class="${number ? "number" : ""}">${shorten(name, LONGEST_CELL)}</th>`,
  )}</tr></thead><tbody>
${shown.map(
  row =>
    html`<tr>${row.map((cell, index) =>
      index === 0
        ? html`<th scope="row">${shortenCell(cell)}</th>`
        : html`<td class="${classOf(columns[index])}">${shortenCell(cell)}</td>`,
    )}</tr>
`,
)}</tbody></table>${rows.length > shown.length && html`<p class="omitted">${count(rows.length - shown.length)} more rows are left out</p>`}</div>`;
}

function classOf({ number, long }: TableColumn): string {
  if (number) return "number";
  return long ? "long" : "";
}

function shortenCell(cell: Part): Part {
  return typeof cell === "string" ? shorten(cell, LONGEST_CELL) : cell;
}
