// What driver and daemon say to each other. A request is repeated under its id after the connection was cut, and a daemon
// that knows the id answers again and does nothing twice. Bytes (input, output, archives) travel in a frame's body.
import { z } from "zod";

export const PROTOCOL_VERSION = 1;

/** One body of an upload or download; larger archives come in several. */
export const PIECE_BYTES = 4 << 20;

const Text = z.string();
/** Why something was not done, in words for a person. */
const Reason = z.string().max(20_000);
const Path = z.string().regex(/^\/[^\0]*$/);
/** The path of an entry as a walk from the root finds it, so that one entry has one path. */
const EntryPath = z.string().regex(/^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/);
const Size = z.int().nonnegative();
const Id = z.string().min(1).max(500);

/**
 * A list from a side that is not trusted: one wrong element is one issue and ends the look, where z.array would note down
 * each of the millions that fit into a frame.
 */
function listOf<Element>(element: z.ZodType<Element>): z.ZodType<Element[]> {
  return z.custom<Element[]>(
    value => Array.isArray(value) && value.every(one => element.safeParse(one).success),
    "not a list of what belongs into it",
  );
}

const Context = {
  /** All of its environment. */
  env: z.record(Text, Text),
  cwd: Path,
  /** As Docker's USER has it; root when not given. */
  user: Text.optional(),
};

export const Operation = z.discriminatedUnion("op", [
  /** First of all: until when the daemon lets everything live, in Unix ms. */
  z.strictObject({
    op: z.literal("open"),
    deadlineMs: z.number(),
    made: z.array(Path),
    /** Size limit of one file that anything here writes. It can be lowered later, not raised. */
    fileLimitBytes: Size.optional(),
  }),
  /**
   * From here on changes count. The body is JSON of the `Listing` to compare with, but for some paths that are compared with
   * what is there now; all are when there is no body.
   */
  z.strictObject({ op: z.literal("mark"), own: z.array(Path) }),
  /** Keeps the body for drivers to come: whoever gets it has found a sandbox that is ready. */
  z.strictObject({ op: z.literal("put-metadata") }),
  z.strictObject({ op: z.literal("get-metadata") }),
  /** Lists what differs from the moment of `mark`. */
  z.strictObject({ op: z.literal("changes") }),
  z.strictObject({
    op: z.literal("exec"),
    requestId: Id,
    argv: z.array(Text).min(1),
    ...Context,
    limitMs: z.number().positive().optional(),
    outputLimitBytes: Size,
    /** A caller's own id is remembered for good; others until their result has arrived. */
    isKept: z.boolean(),
  }),
  z.strictObject({
    op: z.literal("attach"),
    requestId: Id,
    /** Offset in the whole stream, also where bytes of it were left out. */
    stdoutOffset: Size,
    stderrOffset: Size,
    /** The answer waits this long for the command's end. */
    waitMs: Size,
  }),
  z.strictObject({ op: z.literal("signal"), requestId: Id, signal: z.string().regex(/^SIG[A-Z0-9]{2,8}$/) }),
  z.strictObject({ op: z.literal("cancel"), requestId: Id }),
  /** Answers when a process has this command line, when the request's command has ended, or after the limit. */
  z.strictObject({ op: z.literal("await-process"), requestId: Id, argv: z.array(Text), limitMs: Size }),
  z.strictObject({
    op: z.literal("terminal-open"),
    terminal: Id,
    argv: z.array(Text).min(1),
    ...Context,
    columns: z.int().min(1).max(10_000),
    rows: z.int().min(1).max(10_000),
    outputLimitBytes: Size,
    historyLines: z.int().min(0).max(1_000_000).optional(),
  }),
  z.strictObject({ op: z.literal("terminal-send"), terminal: Id }),
  z.strictObject({ op: z.literal("terminal-read"), terminal: Id }),
  z.strictObject({ op: z.literal("terminal-view"), terminal: Id }),
  z.strictObject({
    op: z.literal("terminal-resize"),
    terminal: Id,
    columns: z.int().min(1).max(10_000),
    rows: z.int().min(1).max(10_000),
  }),
  /** Answers when its shell has ended. */
  z.strictObject({ op: z.literal("terminal-closed"), terminal: Id }),
  /** Ends its shell. What it has shown can still be read. */
  z.strictObject({ op: z.literal("terminal-kill"), terminal: Id }),
  z.strictObject({ op: z.literal("terminal-close"), terminal: Id }),
  z.strictObject({
    op: z.literal("upload"),
    transfer: Id,
    folder: Path,
    emptied: z.array(Path),
    /** Entries that are removed before anything is unpacked. */
    removed: z.array(Path),
    /** All that the archive may hold, where who packed it is not trusted; and that not by way of links of its own. */
    only: z.array(Path).optional(),
    keepOwners: z.boolean(),
    isLast: z.boolean(),
  }),
  z.strictObject({ op: z.literal("upload-more"), transfer: Id, isLast: z.boolean() }),
  z.strictObject({
    op: z.literal("download"),
    transfer: Id,
    folder: Path,
    paths: z.array(Path).optional(),
    limitBytes: Size,
  }),
  z.strictObject({ op: z.literal("download-more"), transfer: Id }),
  z.strictObject({ op: z.literal("download-stop"), transfer: Id }),
  z.strictObject({ op: z.literal("describe"), paths: z.array(Path) }),
  /** Everything of the root's own file system. */
  z.strictObject({ op: z.literal("list") }),
  z.strictObject({ op: z.literal("kill-agents") }),
  z.strictObject({ op: z.literal("status") }),
  z.strictObject({ op: z.literal("shutdown") }),
]);
export type Operation = z.infer<typeof Operation>;

export type RequestOf<Op extends Operation["op"]> = Extract<Operation, { op: Op }>;

/** The operations of terminals, in a container or in the terminal host beside a driver. */
export type TerminalOperation = RequestOf<Extract<Operation["op"], `terminal-${string}`>>;

export const Request = z.strictObject({
  kind: z.literal("request"),
  id: Id,
  /** Answers that have arrived: the daemon may forget them. */
  arrived: z.array(Id),
  operation: Operation,
});
export type Request = z.infer<typeof Request>;

/** Where in the answer's body the kept bytes of a stream lie: head, then tail. */
const CapturedSizes = z.strictObject({ headBytes: Size, tailBytes: Size, omittedBytes: Size });
export type CapturedSizes = z.infer<typeof CapturedSizes>;

const End = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("exited"), exitCode: z.int() }),
  /** A name, or the number of one that has none. */
  z.strictObject({ kind: z.literal("signalled"), signal: z.string().max(20) }),
  z.strictObject({ kind: z.literal("timed-out"), limitMs: z.number() }),
]);

/** From an offset on: bytes that were left out, then bytes of the body, up to the offset of the next call. */
const StreamPart = z.strictObject({ omittedBytes: Size, bytes: Size, nextOffset: Size });
export type StreamPart = z.infer<typeof StreamPart>;

const FileKind = z.enum(["file", "folder", "link", "other"]);
export type FileKind = z.infer<typeof FileKind>;

/** The entry at a path, links not followed. */
export const Described = z.strictObject({
  kind: FileKind,
  /** Permission bits. */
  mode: z.int(),
  uid: z.int(),
  gid: z.int(),
  /** Time of the last change of anything about it, in ns. Nobody inside can set it. */
  changed: Text,
  /** Its number in its file system: two that came at the same time have different ones. */
  inode: Text,
});
export type Described = z.infer<typeof Described>;

/** Kept in memory and sent around by the ten thousand, hence without names. */
export const ListedEntry = z.tuple([
  EntryPath.describe("path"),
  FileKind,
  z.int().describe("mode"),
  z.int().describe("uid"),
  z.int().describe("gid"),
  Text.describe("changed"),
  Text.describe("inode"),
]);
export type ListedEntry = z.infer<typeof ListedEntry>;
export const Listing = listOf(ListedEntry);
export type Listing = z.infer<typeof Listing>;

export const Changes = listOf(
  z.tuple([
    EntryPath.describe("path"),
    z.enum(["added", "modified", "deleted"]),
    /** Kind of the entry that is there now, or was. */
    FileKind,
    z.boolean().describe("whether something of another kind was there before"),
    Text.nullable().describe("where a link that is there leads"),
  ]),
);
export type Changes = z.infer<typeof Changes>;

/** The answer to each operation, untrusted where an agent may have got hold of the daemon. */
export const Answers = {
  open: z.strictObject({ refused: Reason.optional() }),
  mark: z.strictObject({ refused: Reason.optional() }),
  "put-metadata": z.strictObject({}),
  /** The body is what was put. */
  "get-metadata": z.strictObject({ isSet: z.boolean() }),
  /** The body is JSON of `Changes`. */
  changes: z.strictObject({ refused: Reason.optional() }),
  exec: z.strictObject({
    end: End,
    durationMs: z.number().nonnegative(),
    stdout: CapturedSizes,
    stderr: CapturedSizes,
  }),
  attach: z.union([
    z.strictObject({ unknown: z.literal(true) }),
    z.strictObject({
      stdout: StreamPart,
      stderr: StreamPart,
      end: End.optional(),
      durationMs: z.number().optional(),
    }),
  ]),
  signal: z.strictObject({ reached: z.boolean() }),
  cancel: z.strictObject({}),
  "await-process": z.strictObject({ state: z.enum(["seen", "ended", "late"]) }),
  "terminal-open": z.strictObject({ refused: Reason.optional() }),
  "terminal-send": z.strictObject({ taken: Size }),
  "terminal-read": CapturedSizes,
  "terminal-view": z.strictObject({
    history: listOf(Text),
    screen: listOf(Text),
    applicationCursorKeys: z.boolean(),
  }),
  "terminal-resize": z.strictObject({}),
  "terminal-closed": z.strictObject({}),
  "terminal-kill": z.strictObject({}),
  "terminal-close": z.strictObject({}),
  upload: z.strictObject({ refused: Reason.optional() }),
  "upload-more": z.strictObject({ refused: Reason.optional() }),
  download: z.strictObject({
    state: z.enum(["more", "done", "missing", "oversized", "refused"]),
    refused: Reason.optional(),
  }),
  "download-more": z.strictObject({
    state: z.enum(["more", "done", "oversized", "refused"]),
    refused: Reason.optional(),
  }),
  "download-stop": z.strictObject({}),
  describe: z.strictObject({ entries: listOf(Described.nullable()) }),
  /** The body is JSON of `Listing`. */
  list: z.strictObject({ refused: Reason.optional() }),
  "kill-agents": z.strictObject({ isEmpty: z.boolean() }),
  status: z.strictObject({
    pid: z.int(),
    /** Requests whose command runs or whose result is kept. */
    requests: listOf(z.strictObject({ requestId: Id, hasEnded: z.boolean() })),
    rssBytes: Size,
  }),
  shutdown: z.strictObject({}),
} as const satisfies Record<Operation["op"], z.ZodType>;
export type Answer<Op extends Operation["op"]> = z.infer<(typeof Answers)[Op]>;

export interface ResponseOf<Op extends Operation["op"] = Operation["op"]> {
  readonly value: Answer<Op>;
  readonly body?: Uint8Array;
}

export const Reply = z.union([
  z.strictObject({ kind: z.literal("reply"), id: Id, value: z.unknown() }),
  z.strictObject({ kind: z.literal("reply"), id: Id, bug: Text }),
]);
export type Reply = z.infer<typeof Reply>;
