// Checks a stored chunk before anything is trained on it: its shape, and every receipt against the tensors themselves.
import { InvariantError } from "../failure/errors.ts";
import type { Chunk } from "./chunk.ts";
import { computeReceipt } from "./receipt.ts";
import { assertRoutes, type RouteLayout, type Routes, sliceRoutes } from "./routes.ts";

export interface ChunkAudit {
  readonly tokenCount: number;
  readonly sampledTokenCount: number;
  /** Turns whose receipt was made again from the tensors and agreed: all of them, or the audit throws. */
  readonly receiptCount: number;
}

/**
 * @param layout undefined where no expert was chosen: there must be no routes then
 * @throws InvariantError naming the turn and what differs
 */
export function auditChunk(
  { tokens, mask, logProbs, routes, turns }: Chunk,
  layout: RouteLayout | undefined,
): ChunkAudit {
  const count = tokens.length;
  if (mask.length !== count || logProbs.length !== count) {
    throw new InvariantError("arrays of a chunk differ in length", {
      tokens: count,
      mask: mask.length,
      logProbs: logProbs.length,
    });
  }
  assertRoutesAsRecorded(routes, count, layout);
  const sampled = new Uint8Array(count);
  turns.forEach(({ start, end, routesStart, policyVersion, receipt }, index) => {
    if (!(0 < start && start < end && end <= count && routesStart < end)) {
      throw new InvariantError("a turn lies outside its chunk", {
        turn: index,
        start,
        end,
        routesStart,
        tokens: count,
      });
    }
    sampled.fill(1, start, end);
    const made = computeReceipt({
      prompt: tokens.subarray(0, start),
      sampled: tokens.subarray(start, end),
      logProbs: logProbs.subarray(start, end),
      routes: routes && sliceRoutes(routes, routesStart, end - 1),
      policyVersion,
    });
    if (!Buffer.from(made).equals(receipt)) {
      throw new InvariantError(
        "receipt does not match: token ids, log-probs, routes or policy version changed after sampling",
        {
          turn: index,
          receipt: Buffer.from(receipt).toString("hex"),
          recomputed: Buffer.from(made).toString("hex"),
        },
      );
    }
  });
  const wrong = mask.findIndex((bit, place) => bit !== sampled[place]);
  if (wrong !== -1)
    throw new InvariantError("the loss mask differs from the sampled turns", {
      token: wrong,
      mask: mask[wrong],
    });
  return {
    tokenCount: count,
    sampledTokenCount: sampled.reduce((sum, bit) => sum + bit, 0),
    receiptCount: turns.length,
  };
}

function assertRoutesAsRecorded(
  routes: Routes | undefined,
  tokenCount: number,
  layout: RouteLayout | undefined,
): void {
  if (routes !== undefined && layout !== undefined) assertRoutes(routes, tokenCount, layout);
  else if (routes !== undefined)
    throw new InvariantError("routes without a model that has experts", { tokenCount });
  else if (layout !== undefined) throw new InvariantError("routes are missing", { tokenCount, layout });
}
