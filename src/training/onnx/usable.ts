// Finite weights can still make numbers that are not, or hide them. A new version has to score a chunk before it is
// handed out.
import type { Chunk } from "../../trajectory/chunk.ts";
import { scoreValues } from "./critic.ts";
import type { Network, Sessions } from "./network.ts";
import { scorePolicy } from "./policy.ts";

/**
 * Scores the shortest chunk, with experts that the policy chooses itself.
 *
 * @throws NotFinite
 */
export async function assertUsable(
  { actor, critic }: { readonly actor: Network; readonly critic?: Network | undefined },
  sessions: Sessions,
  chunks: readonly Chunk[],
  temperature: number,
): Promise<void> {
  const shortest = chunks.reduce((least, chunk) =>
    chunk.tokens.length < least.tokens.length ? chunk : least,
  );
  await scorePolicy(actor, sessions, [shortest], { temperature, replay: false });
  if (critic !== undefined) await scoreValues(critic, sessions, [shortest]);
}
