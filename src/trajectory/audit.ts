// Checks what an episode recorded before anything is trained on it. Nothing of a chunk is left unproven: sampled tokens,
// log-probs and routes are in the receipts, given tokens are in the receipt of the next answer, mask and masked log-probs
// follow from the turns, and the rows that a fork took over equal those of the chunk that it came from.
import { InvariantError } from "../failure/errors.ts";
import type { Chunk, Turn } from "./chunk.ts";
import { bytesOf, PrefixHashes } from "./prefix-hashes.ts";
import { computeReceipt } from "./receipt.ts";
import { assertRoutes, type RouteLayout, type Routes, sliceRoutes } from "./routes.ts";

export interface ChunkAudit {
  readonly tokenCount: number;
  readonly sampledTokenCount: number;
  /** Turns whose receipt was made again from the tensors and agreed: all of them, or the audit throws. */
  readonly receiptCount: number;
}

export interface AuditExpectation {
  /** Undefined where no expert was chosen: there must be no routes then. */
  readonly layout: RouteLayout | undefined;
  /** The policy that the iteration was sampled from, as its closed list has it. */
  readonly policyVersion: number;
}

/**
 * @param chunks all that the episode recorded, in their order, those that are not trained too: others may be forks of them
 * @returns one audit per chunk
 * @throws InvariantError naming the chunk, the turn and what differs
 */
export function auditEpisode(chunks: readonly Chunk[], expected: AuditExpectation): ChunkAudit[] {
  return chunks.map((chunk, index) => {
    try {
      return auditChunk(chunk, chunks.slice(0, index), expected);
    } catch (error) {
      if (error instanceof InvariantError) error.message = `chunk ${index}: ${error.message}`;
      throw error;
    }
  });
}

function auditChunk(
  chunk: Chunk,
  earlier: readonly Chunk[],
  { layout, policyVersion }: AuditExpectation,
): ChunkAudit {
  const { tokens, mask, logProbs, routes, turns } = chunk;
  const lengths = { tokens: tokens.length, mask: mask.length, logProbs: logProbs.length };
  if (mask.length !== tokens.length || logProbs.length !== tokens.length)
    throw new InvariantError("arrays of a chunk differ in length", lengths);
  assertRoutesAsRecorded(routes, tokens.length, layout);
  assertTurnsTile(chunk, earlier);
  const prefixes = new PrefixHashes();
  turns.forEach((turn, index) => {
    if (turn.policyVersion !== policyVersion)
      throw new InvariantError("sampled from another policy than the closed list says", {
        turn: index,
        expected: policyVersion,
        got: turn.policyVersion,
      });
    assertReceipt(chunk, turn, index, prefixes);
  });
  assertMask(chunk);
  return {
    tokenCount: tokens.length,
    sampledTokenCount: turns.reduce((sum, { start, end }) => sum + end - start, 0),
    receiptCount: turns.length,
  };
}

/** Each turn follows the one before and brings the rows from where that one ended; the last ends with the chunk. */
function assertTurnsTile(chunk: Chunk, earlier: readonly Chunk[]): void {
  const { tokens, turns } = chunk;
  let covered = { end: 0, rows: turns[0]?.routesStart ?? 0 };
  turns.forEach(({ start, end, routesStart }, index) => {
    if (!(covered.end < start && start < end && end <= tokens.length && routesStart === covered.rows))
      throw new InvariantError("turns do not tile their chunk", {
        turn: index,
        ...{ start, end, routesStart, tokens: tokens.length },
        ...{ previousEnd: covered.end, expectedRoutesStart: covered.rows },
      });
    covered = { end, rows: end - 1 };
  });
  if (covered.end !== tokens.length)
    throw new InvariantError("turns do not tile their chunk", { end: covered.end, tokens: tokens.length });
  const inherited = turns[0].routesStart;
  if (inherited !== 0 && !earlier.some(parent => isForkOf(chunk, parent, inherited)))
    throw new InvariantError("the first rows are in no receipt and equal those of no earlier chunk", {
      rows: inherited,
    });
}

/** Whether the chunk goes on after an answer of `parent`: same tokens up to its end, same rows up to its last token. */
function isForkOf(chunk: Chunk, parent: Chunk, rowCount: number): boolean {
  if (!parent.turns.some(({ end }) => end === rowCount + 1)) return false;
  const tokensOf = ({ tokens }: Chunk): Buffer => bytesOf(tokens.subarray(0, rowCount + 1));
  const rowsOf = ({ routes }: Chunk): Buffer =>
    bytesOf(routes === undefined ? new Uint8Array(0) : sliceRoutes(routes, 0, rowCount).ids);
  return tokensOf(chunk).equals(tokensOf(parent)) && rowsOf(chunk).equals(rowsOf(parent));
}

function assertReceipt(
  { tokens, logProbs, routes }: Chunk,
  { start, end, routesStart, policyVersion, receipt }: Turn,
  index: number,
  prefixes: PrefixHashes,
): void {
  const turn = {
    prompt: tokens.subarray(0, start),
    sampled: tokens.subarray(start, end),
    logProbs: logProbs.subarray(start, end),
    routes: routes && sliceRoutes(routes, routesStart, end - 1),
    policyVersion,
  };
  const made = computeReceipt(turn, prefixes);
  if (!bytesOf(made).equals(receipt))
    throw new InvariantError(
      "receipt does not match: token ids, log-probs, routes or policy version changed after sampling",
      {
        turn: index,
        receipt: Buffer.from(receipt).toString("hex"),
        recomputed: Buffer.from(made).toString("hex"),
      },
    );
}

/** The mask is 1 exactly on sampled tokens; log-probs are finite there and 0, as bits, everywhere else. */
function assertMask({ tokens, mask, logProbs, turns }: Chunk): void {
  const sampled = new Uint8Array(tokens.length);
  for (const { start, end } of turns) sampled.fill(1, start, end);
  for (let token = 0; token < tokens.length; token++) {
    const logProb = logProbs[token];
    if (mask[token] !== sampled[token])
      throw new InvariantError("the loss mask differs from the sampled turns", { token, mask: mask[token] });
    if (sampled[token] === 1 ? !Number.isFinite(logProb) : !Object.is(logProb, 0))
      throw new InvariantError("a log-prob is not finite, or not 0 where nothing was sampled", {
        token,
        logProb: `${logProb}`,
      });
  }
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
