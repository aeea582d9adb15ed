// Reasons for the end of an episode, and their meaning for its reward and weight (docs/architecture.md, "Failure or
// the agent's doing").

/** Reports and help texts print these sentences. */
export const END_REASONS = {
  completed: "the policy said that it was done",
  agent_error: "the agent broke its own sandbox or its verifier",
  turn_limit: "the episode used all its turns",
  context_limit: "the next observation or answer did not fit into the context",
  time_limit: "the task's agent time ran out; waiting for the sampler does not count",
  cancelled: "the straggler rule stopped it",
  failure: "the infrastructure failed; the episode has no reward and no weight",
} as const;
export type EndReason = keyof typeof END_REASONS;

/** Whether a limit cut the episode before the policy decided to stop; the setting `truncation` says what it earns. */
export function isTruncated(reason: EndReason): boolean {
  return reason === "turn_limit" || reason === "context_limit";
}
