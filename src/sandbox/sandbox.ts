// The contract of a sandbox: one machine-like place in which an episode's commands run. Everything that comes out of
// it is untrusted. One contract suite (test/contracts/sandbox.ts) runs over every provider.

/** What a sandbox is made from and allowed to do. Sizes and times are hard limits. */
export interface SandboxSpec {
  readonly image: SandboxImage;
  /** Working directory of commands; created when it is missing. Absolute. */
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  /**
   * `none`: nobody but the sandbox itself. `host`: commands and terminals that ask for it have this machine's network
   * with all that listens on its loopback, and the others have none; in a container, which has one network, they all have
   * it. `public`: whatever the container engine's usual network reaches, but for link-local addresses. A provider refuses
   * what it does not have.
   */
  readonly network: "none" | "host" | "public";
  /** Room for everything that is written, in memory (tmpfs). */
  readonly diskBytes: number;
  /** Name or id of the user of commands, as Docker's USER has it; the image's own, or root, when not given. */
  readonly user?: string;
  /** Limit for all processes together; none when not given. */
  readonly memoryBytes?: number;
  /** How many processors' time all processes together get; a fraction is allowed. */
  readonly cpus?: number;
  /** Containers beside it, each after those that it waits for. They live as long as the sandbox, and no agent is in them. */
  readonly services?: readonly SandboxService[];
}

/** A container on the sandbox's network, where its name stands for the loopback that all of them share. */
export interface SandboxService {
  readonly name: string;
  /** Name of an image that the engine has. */
  readonly reference: string;
  /** The image's own where they are not given. */
  readonly entrypoint?: readonly string[] | undefined;
  readonly command?: readonly string[] | undefined;
  readonly workdir?: string | undefined;
  readonly user?: string | undefined;
  readonly healthcheck?: ServiceHealthcheck | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly after: readonly ServiceCondition[];
  readonly memoryBytes?: number | undefined;
  readonly cpus?: number | undefined;
}

/** Docker's words and defaults: the first word of the test is CMD, CMD-SHELL or NONE. */
interface ServiceHealthcheck {
  readonly test: readonly string[];
  readonly intervalMs?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly startPeriodMs?: number | undefined;
  readonly retries?: number | undefined;
}

export interface ServiceCondition {
  readonly service: string;
  /** ready: healthy where it has a health check, else started. */
  readonly condition: "started" | "healthy" | "completed" | "ready";
}

/**
 * `host`: the system folders of this machine, read-only, with fresh folders for everything that can be written.
 * `root`: a folder that holds a whole root file system, below an overlay that swallows all changes.
 * `docker`: an image that a docker daemon knows.
 */
export type SandboxImage =
  | { readonly kind: "host"; readonly files: readonly SandboxFile[] }
  | RootImage
  | { readonly kind: "docker"; readonly reference: string; readonly files: readonly SandboxFile[] };

export interface RootImage {
  readonly kind: "root";
  readonly folder: string;
  /** Folders of changes over it, as an overlay's upper folder holds them (whiteouts); the uppermost first. */
  readonly layers?: readonly string[];
  /**
   * Keeps all changes on disk instead of in memory, without a limit of size: a folder with the empty folders `upper`
   * and `work`. `upper` is a layer when the sandbox has ended.
   */
  readonly changes?: string;
  /** Words of the image's ENTRYPOINT. It is started with a command that waits, and others go in when it has run that. */
  readonly entrypoint?: readonly string[];
  readonly files: readonly SandboxFile[];
}

/** Copies a file, or what a folder holds, to an absolute path inside. Symbolic links stay links, none is followed. */
export interface SandboxFile {
  readonly from: string;
  readonly to: string;
}

/** Nothing carries over from one command to the next but files and processes: each starts in the spec's environment. */
export interface ExecOptions {
  /** Absolute; the spec's working directory when not given. */
  readonly cwd?: string;
  /** Added to the spec's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Name or id of the user; refused where the sandbox maps one user only and this is another one. */
  readonly user?: string;
  /** Where the spec allows it: this machine's network instead of none. */
  readonly network?: "host";
  /** TERM to the process group after this time, KILL shortly after. Never later than the lease's deadline. */
  readonly timeoutMs: number;
  /** Closed when not given. */
  readonly stdin?: Uint8Array;
  /** Kept bytes per output stream: the first and the last half of it. */
  readonly outputLimitBytes?: number;
  /** A repeated id returns the first result, also of a command that still runs, and never runs twice. */
  readonly requestId?: string;
  /** Ends the process group; `exec` then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** A failing, killed or slow command is a result, never an exception. Exactly one of the three ends is set. */
export interface ExecResult {
  readonly end:
    | { readonly kind: "exited"; readonly exitCode: number }
    | { readonly kind: "signalled"; readonly signal: string }
    | { readonly kind: "timed-out"; readonly limitMs: number };
  readonly stdout: CapturedOutput;
  readonly stderr: CapturedOutput;
  readonly durationMs: number;
}

export interface CapturedOutput {
  /** Raw bytes as kept: all of them, or head + tail when `omittedBytes` > 0. */
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  /** Bytes left out between head and tail. */
  readonly omittedBytes: number;
}

export interface TerminalOptions {
  readonly columns: number;
  readonly rows: number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** As of a command. */
  readonly network?: "host";
  /** Kept bytes between two calls of `readNew`: the first and the last half of it. */
  readonly outputLimitBytes?: number;
  /** Kept lines that scrolled out at the top of the screen; 1,000 when not given. */
  readonly historyLines?: number;
}

/** What a terminal shows at one moment, as lines of characters without attributes; trailing blanks cut. */
export interface TerminalView {
  /** Lines that scrolled out at the top, oldest first, as far as they are kept. A long line is as many as it filled. */
  readonly history: readonly string[];
  /** `rows` lines: what a person would see. */
  readonly screen: readonly string[];
  /** The program wants cursor keys as `ESC O A` instead of `ESC [ A` (DECCKM); editors and pagers do. */
  readonly applicationCursorKeys: boolean;
}

export interface Terminal extends AsyncDisposable {
  /**
   * Bytes as a keyboard would send them; nothing is added. Resolves when the terminal has taken them all, or when its
   * shell has ended or what runs in it reads nothing for some seconds.
   *
   * A program that reads lines (not one that edits them, as bash does) gets at most 4,095 bytes of one line: that is
   * the line discipline of every Linux terminal (n_tty, N_TTY_BUF_SIZE).
   *
   * @returns how many bytes were taken; fewer than given is for the caller to report
   */
  send(keys: string | Uint8Array): Promise<number>;
  /** Output since the last call, raw (escape sequences included). */
  readNew(): Promise<CapturedOutput>;
  /** What a person would see now: `rows` lines, trailing blanks cut. */
  screen(): Promise<readonly string[]>;
  /** The same with what scrolled out, and what the program expects of the keyboard; all of one moment. */
  view(): Promise<TerminalView>;
  resize(columns: number, rows: number): Promise<void>;
  /** Resolves when the shell of the terminal has ended. */
  readonly closed: Promise<void>;
}

export interface UploadOptions {
  /**
   * Absolute folders that are replaced by fresh, empty ones before anything is unpacked, whatever was made of them: a
   * link is replaced, not followed, and what stands in the way on the path is removed. Nothing of the sandbox is run for
   * it. What cannot be removed, such as a mount, is `refused`.
   */
  readonly emptied?: readonly string[];
}

export type UploadResult =
  | { readonly unpacked: true }
  /** The sandbox does not take it: disk full, a file in the way. Before an agent ran, the fault of the spec. */
  | { readonly refused: string };

export type DownloadResult =
  | { readonly tar: Uint8Array }
  | { readonly missing: true }
  | { readonly oversized: true }
  /** The sandbox does not hand it out, with the last words of its tar. */
  | { readonly refused: string };

/** One difference between a sandbox's files and those of its image. */
export interface FileChange {
  /** Absolute, symbolic links not followed. Bytes that are no UTF-8 are replaced. */
  readonly path: string;
  readonly change: "added" | "modified" | "deleted";
  /** What is there now; of something deleted, what the image has there. */
  readonly kind: "file" | "folder" | "link" | "other";
  /** Where a link that is there leads, as it is written in it. */
  readonly target?: string;
}

export interface Sandbox extends AsyncDisposable {
  readonly lease: Lease;
  /** Runs `/bin/sh -c command` in a process group of its own. @throws Failure SandboxLost when the sandbox is gone */
  exec(command: string, options: ExecOptions): Promise<ExecResult>;
  terminal(options: TerminalOptions): Promise<Terminal>;
  /** Unpacks a tar archive into a folder, which is created when it is missing. Links are resolved inside only. */
  upload(tar: Uint8Array, folder: string, options?: UploadOptions): Promise<UploadResult>;
  /** Packs a folder's content; the archive is untrusted and at most `limitBytes` long (read it by tar.ts). */
  download(folder: string, limitBytes: number): Promise<DownloadResult>;
  /** Ends every process inside and makes sure that none is left. */
  killAgents(): Promise<void>;
  /**
   * What differs from the image (the spec's files are part of it), sorted by path. Folders that only contain changes need
   * not be listed; where a folder is added or deleted, so is what it holds. `/proc`, `/sys` and `/dev` are left out.
   *
   * @throws Failure SandboxBroken when the files cannot be listed because of what was made of them
   */
  changedFiles(): Promise<readonly FileChange[]>;
  /**
   * A fresh sandbox of the same spec with this one's changed files and none of its processes. It may have some more room,
   * so that something can be written where this one is full. This one's processes are ended; it may be disposed of at once.
   *
   * @param options.without absolute paths that stay as the image has them, with what is below them; the fresh sandbox may be
   * made while these are still being found out, and is ended when they cannot be
   * @param options.network of the new one where a sandbox has one network for all its commands; the spec's when not given
   * @returns `refused` when what was left cannot be carried
   */
  successor(lease: Lease, options: SuccessorOptions): Promise<Sandbox | { readonly refused: string }>;
}

export interface SuccessorOptions {
  readonly without: readonly string[] | Promise<readonly string[]>;
  readonly network?: SandboxSpec["network"];
}

/** Right to one sandbox. `generation` tells a sandbox that was made again from the one that was lost. */
export interface Lease {
  readonly id: string;
  readonly generation: number;
  /** Unix time in ms. After it anybody's `sweep()` ends the sandbox. */
  readonly deadlineMs: number;
}

export interface SandboxProvider extends AsyncDisposable {
  readonly name: string;
  /** @throws InputError when this machine cannot isolate, with what would allow it; Failure SandboxUnavailable */
  create(spec: SandboxSpec, lease: Lease): Promise<Sandbox>;
  /** Takes over a running sandbox after its driver died; undefined when it is gone (always, where it dies with its driver). */
  adopt(lease: Lease): Promise<Sandbox | undefined>;
  /** Ends what nobody owns any more: owner dead, or deadline passed. @returns ended lease ids */
  sweep(): Promise<readonly string[]>;
}
