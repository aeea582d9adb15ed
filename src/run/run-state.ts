// `state.json`, the one object of a run that moves: how far it has come. Two cursors, since the rollouts of the next
// iteration may run while this one is trained: rollouts closed, policy published. The first leads by at most one.
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { Failure, formatErrorText, InputError, InvariantError } from "../failure/errors.ts";
import { encodeJson, parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { stateKey } from "./keys.ts";

/** Where the next iteration takes its tasks from: position in the shuffled pool of an epoch. */
export const PoolCursor = z.strictObject({ epoch: z.int().nonnegative(), position: z.int().nonnegative() });
export type PoolCursor = z.infer<typeof PoolCursor>;

const Fields = z.strictObject({
  /** Iterations whose list of admitted attempts is closed: iterations 0 to this - 1. */
  rolloutsClosed: z.int().nonnegative(),
  /** Version of the newest policy; iteration i publishes version i + 1, and version 0 is where the run began. */
  policyPublished: z.int().nonnegative(),
  pool: PoolCursor,
  /** Missing while the run may go on. */
  stopped: z.strictObject({ reason: z.string().min(1) }).optional(),
});
export const RunState = Fields.refine(
  leadsByAtMostOne,
  "expected rolloutsClosed to be policyPublished or one more",
);
export type RunState = z.infer<typeof RunState>;

/** A state with the version of its object, which the next move has to find unchanged. */
export interface VersionedState {
  readonly state: RunState;
  readonly etag: string;
}

export type Move =
  /** @param pool where the iteration after the next takes its tasks from */
  | { readonly kind: "close-rollouts"; readonly iteration: number; readonly pool: PoolCursor }
  | { readonly kind: "publish-policy"; readonly version: number }
  | { readonly kind: "stop"; readonly reason: string }
  | { readonly kind: "resume" };

/** @throws InputError when the run has a state already */
export async function createState(
  store: ObjectStore,
  run: string,
  pool: PoolCursor,
): Promise<VersionedState> {
  const state: RunState = { rolloutsClosed: 0, policyPublished: 0, pool };
  const result = await store.put(stateKey(run), encodeJson(state), { ifNoneMatch: "*" });
  if (result.written) return { state, etag: result.etag };
  throw new InputError({
    what: "the run exists already",
    where: stateKey(run),
    expected: "expected a new run",
    fix: "resume it, or choose another name",
  });
}

/** @throws InputError when the run has no state, or one that cannot be */
export async function readState(store: ObjectStore, run: string): Promise<VersionedState> {
  const key = stateKey(run);
  const found = await store.get(key);
  if (found === undefined)
    throw new InputError({
      what: "no such run",
      where: key,
      expected: `expected it in ${store.url}`,
      fix: "check the name of the run and the store",
    });
  return { state: parseJson(found.body, key, RunState), etag: found.etag };
}

/**
 * Moves the state from the version that was read. The same move may be made again by a stage that runs again. Anybody may
 * stop a run or let it go on: that is not taken for another runner.
 *
 * @throws InvariantError for an illegal move
 * @throws Failure RunStopped when the run was stopped; OwnerLost when the state moved since it was read
 */
export async function advanceState(
  store: ObjectStore,
  run: string,
  from: VersionedState,
  move: Move,
): Promise<VersionedState> {
  const state = applyMove(from.state, move);
  if (state === from.state) return from;
  const result = await store.put(stateKey(run), encodeJson(state), { ifMatch: from.etag });
  if (result.written) return { state, etag: result.etag };
  const now = await readState(store, run);
  const { stopped: _, ...here } = from.state;
  const { stopped: __, ...there } = now.state;
  if (now.etag !== from.etag && isDeepStrictEqual(here, there)) return advanceState(store, run, now, move);
  if (move.kind === "stop" || move.kind === "resume") return advanceState(store, run, now, move);
  const text = formatErrorText({
    what: "the state of the run was moved by another runner",
    where: stateKey(run),
    expected: `expected ${JSON.stringify(from.state)} before ${move.kind}`,
    fix: "let one runner own the run",
  });
  throw new Failure("OwnerLost", text, { retryable: false });
}

/** @returns the same object when the move was made already @throws as `advanceState` */
export function applyMove(state: RunState, move: Move): RunState {
  switch (move.kind) {
    case "close-rollouts":
      return closeRollouts(state, move);
    case "publish-policy":
      return publishPolicy(state, move);
    case "stop":
      return state.stopped === undefined ? { ...state, stopped: { reason: move.reason } } : state;
    case "resume": {
      const { stopped, ...running } = state;
      return stopped === undefined ? state : running;
    }
    default:
      return move satisfies never;
  }
}

function closeRollouts(state: RunState, move: Move & { kind: "close-rollouts" }): RunState {
  const { iteration, pool } = move;
  if (state.rolloutsClosed === iteration + 1 && compareCursors(state.pool, pool) === 0) return state;
  assertRunning(state);
  const isNext = iteration === state.rolloutsClosed && state.rolloutsClosed === state.policyPublished;
  if (!isNext || compareCursors(state.pool, pool) > 0) throw illegal(state, move);
  return { ...state, rolloutsClosed: iteration + 1, pool };
}

function publishPolicy(state: RunState, move: Move & { kind: "publish-policy" }): RunState {
  const { version } = move;
  if (state.policyPublished === version) return state;
  assertRunning(state);
  if (version !== state.policyPublished + 1 || version > state.rolloutsClosed) throw illegal(state, move);
  return { ...state, policyPublished: version };
}

function assertRunning({ stopped }: RunState): void {
  if (stopped === undefined) return;
  throw new Failure("RunStopped", `the run was stopped: ${stopped.reason}`, { retryable: false });
}

function leadsByAtMostOne(cursors: z.infer<typeof Fields>): boolean {
  const lead = cursors.rolloutsClosed - cursors.policyPublished;
  return lead === 0 || lead === 1;
}

function compareCursors(a: PoolCursor, b: PoolCursor): number {
  return a.epoch === b.epoch ? a.position - b.position : a.epoch - b.epoch;
}

function illegal(state: RunState, move: Move): InvariantError {
  return new InvariantError("illegal move of the run's state", { state, move });
}
