// Guesses the known name behind a mistyped one.

/** @returns undefined when nothing is near: more than a third of the letters (and more than two) differ */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const [best] = known
    .map(candidate => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance);
  if (best === undefined) return undefined;
  return best.distance <= Math.max(2, Math.floor(name.length / 3)) ? best.candidate : undefined;
}

/** Insertions, deletions and replacements that turn one into the other (Levenshtein). */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = previous[column - 1] + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column] + 1, current[column - 1] + 1));
    }
    previous = current;
  }
  return previous[b.length];
}
