// Reasoning models write what they think before they answer; only the answer is acted on.

/** What follows the end of the reasoning, when there is one. */
export function withoutReasoning(answer: string): string {
  const end = "</think>";
  const at = answer.indexOf(end);
  return at === -1 ? answer : answer.slice(at + end.length);
}
