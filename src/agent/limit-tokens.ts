// An observation that is too long loses its middle.

/** Keeps the first two thirds and the last third of a limit, with a marker between; a marker alone is no use below 8. */
export function limitTokens(tokens: readonly number[], limit: number, marker: readonly number[]): number[] {
  if (tokens.length <= limit) return [...tokens];
  if (limit < marker.length + 8) return tokens.slice(0, limit);
  const room = limit - marker.length;
  const tail = Math.floor(room / 3);
  return [...tokens.slice(0, room - tail), ...marker, ...tokens.slice(tokens.length - tail)];
}
