// How far an execution has come, as a tree: a branch stands at a state, and a Map or Parallel under way has branches of
// its own. Every change is a record, so a journal of records makes the same tree again: that is how a killed runner
// goes on.
import { z } from "zod";
import { InvariantError } from "../failure/errors.ts";
import type { Json } from "./json-value.ts";

/** Our own JSON, read back by JSON.parse: the schema checks that it is there and does not walk it again. */
const AnyJson = z.custom<Json>(value => value !== undefined);

const ErrorDetails = z.strictObject({ error: z.string().optional(), cause: z.string().optional() });

/**
 * `path` names a branch: segments `<state number>#<attempt>.<index>` below the root `""`. `last` is the id of the
 * branch's newest event. Texts are JSON.
 */
const Where = { path: z.string(), step: z.int().min(0) };

export const ProgressRecord = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("entered"),
    ...Where,
    id: z.int(),
    previousEventId: z.int(),
    timeMs: z.number(),
  }),
  /** The next try: its number, how often each retrier has fired, and when it may start. */
  z.strictObject({
    kind: z.literal("retry"),
    ...Where,
    attempt: z.int(),
    counts: z.array(z.int()),
    resumeAtMs: z.number(),
    last: z.int(),
  }),
  z.strictObject({
    kind: z.literal("map-run"),
    ...Where,
    attempt: z.int(),
    arn: z.string(),
    items: z.array(AnyJson),
    last: z.int(),
  }),
  z.strictObject({
    kind: z.literal("exited"),
    ...Where,
    next: z.string().optional(),
    output: z.string(),
    assigned: z.record(z.string(), AnyJson).optional(),
    last: z.int(),
  }),
  z.strictObject({
    kind: z.literal("done"),
    path: z.string(),
    output: z.string().optional(),
    failed: ErrorDetails.optional(),
    startMs: z.number(),
    stopMs: z.number(),
    last: z.int(),
  }),
]);
export type ProgressRecord = z.output<typeof ProgressRecord>;
type RecordOf<Kind extends ProgressRecord["kind"]> = Extract<ProgressRecord, { readonly kind: Kind }>;

/** The recorded facts of the state that a branch is in. */
interface EntryProgress {
  readonly step: number;
  entered?: RecordOf<"entered">;
  retry?: RecordOf<"retry">;
  mapRun?: RecordOf<"map-run">;
  /** Keys are `<attempt>.<index>`. */
  readonly branches: Map<string, BranchProgress>;
}

export interface BranchProgress {
  readonly path: string;
  /** The newest state that was left. */
  exited?: RecordOf<"exited">;
  /** Every variable assigned so far. */
  readonly variables: Record<string, Json>;
  entry?: EntryProgress;
  done?: RecordOf<"done">;
}

export function emptyProgress(path = ""): BranchProgress {
  return { path, variables: {} };
}

/** The branch below a state under way; a new one is made. */
export function branchBelow(
  parent: BranchProgress,
  step: number,
  attempt: number,
  index: number,
): BranchProgress {
  const entry = entryAt(parent, step);
  const key = `${attempt}.${index}`;
  let branch = entry.branches.get(key);
  if (branch === undefined) {
    branch = emptyProgress(`${parent.path}/${step}#${key}`);
    entry.branches.set(key, branch);
  }
  return branch;
}

/** Takes a record into the tree of `root`; the record of a finished branch replaces what led there. */
export function applyRecord(root: BranchProgress, record: ProgressRecord): void {
  applyToBranch(findBranch(root, record.path), record);
}

/** Like `applyRecord`, for a caller that has the branch. */
export function applyToBranch(branch: BranchProgress, record: ProgressRecord): void {
  switch (record.kind) {
    case "entered":
      entryAt(branch, record.step).entered = record;
      return;
    case "retry":
      entryAt(branch, record.step).retry = record;
      return;
    case "map-run":
      entryAt(branch, record.step).mapRun = record;
      return;
    case "exited":
      Object.assign(branch.variables, record.assigned);
      branch.exited = record;
      branch.entry = undefined;
      return;
    case "done":
      branch.done = record;
      branch.entry = undefined;
      branch.exited = undefined;
      return;
    default:
      record satisfies never;
  }
}

function entryAt(branch: BranchProgress, step: number): EntryProgress {
  if (branch.entry?.step !== step) branch.entry = { step, branches: new Map() };
  return branch.entry;
}

function findBranch(root: BranchProgress, path: string): BranchProgress {
  let branch = root;
  for (const segment of path.split("/").slice(1)) {
    const match = /^(\d+)#(\d+)\.(\d+)$/.exec(segment);
    if (match === null) throw new InvariantError("a branch path that nobody writes", { path });
    branch = branchBelow(branch, Number(match[1]), Number(match[2]), Number(match[3]));
  }
  return branch;
}
