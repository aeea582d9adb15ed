// Tables for a terminal: columns aligned, numbers to the right.

/** @param rows cells as text; a column whose cells all begin with a digit or sign is aligned to the right */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((name, column) => Math.max(name.length, ...rows.map(row => row[column].length)));
  const right = header.map(
    (_, column) => rows.length > 0 && rows.every(row => /^([-+]?[\d.]|$)/.test(row[column])),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => (right[column] ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
      .join("  ")
      .trimEnd();
  return [line(header), line(widths.map(width => "-".repeat(width))), ...rows.map(line)]
    .map(text => `${text}\n`)
    .join("");
}

/** Lines of at most `width` characters, broken at blanks; a word that is longer, such as a path, stays whole. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** 0.412 → "41.2 %" */
export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

/** Points of percent with their interval, signed: "+12.3 [+8.1, +17.0]" */
export function signedInterval({
  mean,
  low,
  high,
}: {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}): string {
  return `${signedPoints(mean)} [${signedPoints(low)}, ${signedPoints(high)}]`;
}

/** 0.123 → "+12.3" */
export function signedPoints(share: number): string {
  return `${share >= 0 ? "+" : ""}${(100 * share).toFixed(1)}`;
}
