// Reasoning models write their thoughts before they answer; the harness acts on the answer only.

/** The answer behind the end of the reasoning, or the whole text where there is none. */
export function withoutReasoning(answer: string): string {
  const end = "</think>";
  const at = answer.indexOf(end);
  return at === -1 ? answer : answer.slice(at + end.length);
}
