// The process that stands at the door of one sandbox (spawner/): it lets commands in, and the sandbox ends with it.
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../../failure/errors.ts";
import { endProcess, type ProcessId } from "../processes.ts";
import type { ProcessEnd, StartedProcess } from "../run-process.ts";
import type { CommandPipes } from "./named-pipes.ts";
import { listFields, type RequestPipe } from "./requests.ts";

/** A machine that is overloaded takes its time; what is given up here is the end of a run. */
const END_WAIT_MS = 60_000;

/** A program of the sandbox. Paths are absolute. */
export interface Command {
  readonly argv: readonly string[];
  /** All of its environment, as NAME=value. */
  readonly env: readonly string[];
  /** Empty for the folder of all changes: the root itself, or the upper folder of its overlay. */
  readonly cwd: string;
  /** The sandbox's own, in which there is nobody else, when not given. */
  readonly network?: "host" | undefined;
  /** Paths that are removed at the very first, with what they hold. */
  readonly removed?: readonly string[];
  /** Folders that are made before it, with those above them. */
  readonly made?: readonly string[];
  /** Folders that are replaced by fresh ones before it, and before others are made. */
  readonly emptied?: readonly string[];
}

/** A line of an entry process, split at spaces. */
export type EntryAnswer = readonly string[];

interface Running {
  readonly resolve: (end: ProcessEnd) => void;
  readonly reject: (error: Failure) => void;
  readonly tell: (pid: number | undefined) => void;
}

export class EntryProcess {
  /** Resolves when nothing of the sandbox is left. */
  readonly gone: Promise<void>;
  readonly #requests: RequestPipe;
  readonly #running = new Map<string, Running>();
  readonly #kills = new Map<string, (status: number) => void>();
  readonly #opening = Promise.withResolvers<ProcessId>();
  readonly #going = Promise.withResolvers<void>();
  #lastRequest = 0;
  #isGone = false;
  #isClosed = false;

  constructor(requests: RequestPipe) {
    this.#requests = requests;
    this.gone = this.#going.promise;
  }

  /** @throws Failure SandboxUnavailable with what bwrap said */
  get first(): Promise<ProcessId> {
    return this.#opening.promise;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /**
   * Its end rejects with Failure SandboxLost when the sandbox ends first, and with Failure SandboxUnavailable when this
   * machine has no process left. How long it took is measured by the entry process, since this process may be busy.
   */
  start(command: Command, { names }: Pick<CommandPipes, "names">): Omit<StartedProcess, "pipes"> {
    const id = this.#nextRequest();
    const end = Promise.withResolvers<ProcessEnd>();
    const start = Promise.withResolvers<number | undefined>();
    // One that is being ended takes no request any more.
    if (this.#isClosed) {
      end.reject(lost());
      start.resolve(undefined);
    } else {
      this.#running.set(id, { resolve: end.resolve, reject: end.reject, tell: start.resolve });
      const { argv, env, cwd, network, removed = [], made = [], emptied = [] } = command;
      const lists = [removed, made, emptied, env].flatMap(listFields);
      this.#requests.send(["run", id, ...names, network ?? "none", cwd, ...lists, ...argv]);
    }
    return {
      ended: end.promise,
      pid: () => {
        if (this.#running.has(id) && !this.#isClosed) this.#requests.send(["tell", id]);
        return start.promise;
      },
    };
  }

  /** @returns who was left a moment after all were killed; `unknown` when the killer was killed */
  async killAll(): Promise<"nobody" | "somebody" | "unknown"> {
    if (this.#isClosed) throw lost();
    const id = this.#nextRequest();
    const status = await new Promise<number>(resolve => {
      this.#kills.set(id, resolve);
      this.#requests.send(["kill", id]);
    });
    if (status === 0) return "nobody";
    return (status & 127) === 0 ? "somebody" : "unknown";
  }

  /** Ends everything inside and waits for it. May be called again. */
  async end(): Promise<void> {
    this.#close();
    const late = new AbortController();
    const waiting = sleep(END_WAIT_MS, "late" as const, { signal: late.signal });
    const outcome = await Promise.race([this.gone, waiting]);
    late.abort();
    waiting.catch(() => undefined);
    if (outcome !== "late") return;
    const first = await this.first;
    endProcess(first);
    throw new Failure("SandboxUnavailable", `sandbox process ${first.pid} does not end`, {
      retryable: false,
    });
  }

  /** The spawner passes each line of the entry process on to this. */
  receive([kind, ...words]: EntryAnswer): void {
    const [id = "", number] = words;
    switch (kind) {
      case "ready":
        this.#opening.resolve({ pid: Number(id), started: number ?? "" });
        break;
      case "failed":
        this.lose(new Failure("SandboxUnavailable", words.join(" "), { retryable: true }));
        break;
      case "ended":
        this.#running.get(id)?.tell(Number(number));
        this.#running.get(id)?.resolve({ end: endOf(Number(words[2])), durationMs: Number(words[3]) });
        this.#running.delete(id);
        break;
      case "refused":
        this.#running.get(id)?.tell(undefined);
        this.#running.get(id)?.reject(noProcess(number));
        this.#running.delete(id);
        break;
      case "told":
        this.#running.get(id)?.tell(Number(number));
        break;
      case "killed":
        this.#kills.get(id)?.(Number(number));
        this.#kills.delete(id);
        break;
      case "gone":
        this.lose();
        break;
    }
  }

  /** Nothing of the sandbox is left, or nobody is there any more to ask. */
  lose(error: Failure = lost()): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#close();
    for (const { reject, tell } of this.#running.values()) {
      tell(undefined);
      reject(error);
    }
    this.#running.clear();
    for (const resolve of this.#kills.values()) resolve(-1);
    this.#opening.promise.catch(() => undefined); // whoever opens it has it
    this.#opening.reject(error);
    this.#going.resolve();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#requests.close();
  }

  #nextRequest(): string {
    this.#lastRequest += 1;
    return `${this.#lastRequest}`;
  }
}

/** The first name of each number: SIGABRT, not SIGIOT. */
const SIGNAL_NAMES = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** @param status as of waitpid(2) */
function endOf(status: number): ProcessEnd["end"] {
  const number = status & 127;
  if (number === 0) return { kind: "exited", exitCode: status >> 8 };
  // Real-time signals have numbers only.
  return { kind: "signalled", signal: SIGNAL_NAMES.get(number) ?? "SIGRT" };
}

function lost(): Failure {
  return new Failure("SandboxLost", "the sandbox has ended", { retryable: true });
}

function noProcess(errno = ""): Failure {
  const detail = `this machine has no process for a command (errno ${errno})`;
  return new Failure("SandboxUnavailable", detail, { retryable: true });
}
