// How far an execution has come, as a tree: a thread stands at a state, and a Map or Parallel under way has threads of
// its own. Everything that changes it is a record, so that a journal of records makes the same tree again: that is how
// a killed runner goes on and how a redrive keeps what succeeded.
import { z } from "zod";
import { InvariantError } from "../failure/errors.ts";
import type { Json } from "./json-value.ts";

/** Our own JSON, read back by JSON.parse: checked to be there, not walked again. */
const AnyJson = z.custom<Json>(value => value !== undefined);

const ErrorDetails = z.strictObject({ error: z.string().optional(), cause: z.string().optional() });

/**
 * `path` names a thread: segments `<state number>#<attempt>.<index>` below the root `""`. `last` is the id of the
 * thread's newest event. Texts are JSON.
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
  /** A task token is with somebody else now. */
  z.strictObject({
    kind: z.literal("submitted"),
    ...Where,
    attempt: z.int(),
    timeMs: z.number(),
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
  z.strictObject({ kind: z.literal("redriven"), timeMs: z.number() }),
]);
export type ProgressRecord = z.output<typeof ProgressRecord>;
type RecordOf<Kind extends ProgressRecord["kind"]> = Extract<ProgressRecord, { readonly kind: Kind }>;

/** What is known of the state a thread is in. */
interface VisitProgress {
  readonly step: number;
  entered?: RecordOf<"entered">;
  retry?: RecordOf<"retry">;
  submitted?: RecordOf<"submitted">;
  mapRun?: RecordOf<"map-run">;
  /** By `<attempt>.<index>`. */
  readonly threads: Map<string, ThreadProgress>;
}

export interface ThreadProgress {
  readonly path: string;
  /** The newest state that was left. */
  exited?: RecordOf<"exited">;
  /** All that was assigned so far. */
  readonly variables: Record<string, Json>;
  visit?: VisitProgress;
  done?: RecordOf<"done">;
}

export function emptyProgress(path = ""): ThreadProgress {
  return { path, variables: {} };
}

/** The thread below a state under way, made when it is new. */
export function threadBelow(
  parent: ThreadProgress,
  step: number,
  attempt: number,
  index: number,
): ThreadProgress {
  const visit = visitAt(parent, step);
  const key = `${attempt}.${index}`;
  let thread = visit.threads.get(key);
  if (thread === undefined) {
    thread = emptyProgress(`${parent.path}/${step}#${key}`);
    visit.threads.set(key, thread);
  }
  return thread;
}

/** Takes a record into the tree of `root`; records of finished threads replace what led there. */
export function applyRecord(root: ThreadProgress, record: ProgressRecord): void {
  if (record.kind === "redriven") {
    forgetFailures(root);
    return;
  }
  applyToThread(findThread(root, record.path), record);
}

/** As `applyRecord`, when the thread is at hand. */
export function applyToThread(
  thread: ThreadProgress,
  record: Exclude<ProgressRecord, { kind: "redriven" }>,
): void {
  switch (record.kind) {
    case "entered":
      visitAt(thread, record.step).entered = record;
      return;
    case "retry":
      visitAt(thread, record.step).retry = record;
      visitAt(thread, record.step).submitted = undefined;
      return;
    case "submitted":
      visitAt(thread, record.step).submitted = record;
      return;
    case "map-run":
      visitAt(thread, record.step).mapRun = record;
      return;
    case "exited":
      Object.assign(thread.variables, record.assigned);
      thread.exited = record;
      thread.visit = undefined;
      return;
    case "done":
      thread.done = record;
      // A thread that failed keeps its place: a redrive goes on from there.
      if (record.failed === undefined) {
        thread.visit = undefined;
        thread.exited = undefined;
      }
      return;
    default:
      record satisfies never;
  }
}

/** Retriers start afresh and failed threads are open again; what succeeded stays. */
function forgetFailures(thread: ThreadProgress): void {
  if (thread.done?.failed !== undefined) thread.done = undefined;
  const { visit } = thread;
  if (visit === undefined) return;
  visit.submitted = undefined;
  if (visit.retry !== undefined)
    visit.retry = { ...visit.retry, counts: visit.retry.counts.map(() => 0), resumeAtMs: 0 };
  for (const below of visit.threads.values()) forgetFailures(below);
}

function visitAt(thread: ThreadProgress, step: number): VisitProgress {
  if (thread.visit?.step !== step) thread.visit = { step, threads: new Map() };
  return thread.visit;
}

function findThread(root: ThreadProgress, path: string): ThreadProgress {
  let thread = root;
  for (const segment of path.split("/").slice(1)) {
    const match = /^(\d+)#(\d+)\.(\d+)$/.exec(segment);
    if (match === null) throw new InvariantError("a thread path that nobody writes", { path });
    thread = threadBelow(thread, Number(match[1]), Number(match[2]), Number(match[3]));
  }
  return thread;
}
