// The operations that a driver can ask of the daemon.
import { DeadlineTimer } from "../sandbox/deadline-timer.ts";
import { killEverything, type SandboxProcesses } from "../sandbox/kill-everything.ts";
import { listProcesses, sendSignal } from "../sandbox/processes.ts";
import { Baseline } from "./baseline.ts";
import { Commands } from "./commands.ts";
import { describe, listRoot } from "./describe.ts";
import { makeFolder } from "./folders.ts";
import { limitFileSize } from "./kernel.ts";
import { openTerminal } from "./open-terminal.ts";
import type { Changes, Listing, Operation, RequestOf, ResponseOf } from "./protocol.ts";
import { Reaper } from "./reaper.ts";
import { refusable, refusalOf } from "./refusal.ts";
import { isOfTerminal, Terminals } from "./terminals.ts";
import { Transfers } from "./transfers.ts";

export class Operations {
  readonly #reaper = new Reaper();
  readonly #commands = new Commands(this.#reaper);
  readonly #terminals = new Terminals(request => openTerminal(request, this.#reaper));
  readonly #transfers = new Transfers();
  readonly #end: () => void;
  #deadline: DeadlineTimer | undefined;
  #baseline: Baseline | undefined;
  #metadata: Uint8Array | undefined;

  /** @param end ends the daemon and with it the sandbox */
  constructor(end: () => void) {
    this.#end = end;
    this.#reaper.start();
  }

  /** @param requestId of a command whose result a driver has */
  forget(requestId: string): void {
    this.#commands.forget(requestId);
  }

  async perform(asked: Operation, body: Uint8Array): Promise<ResponseOf> {
    if (isOfTerminal(asked)) return this.#terminals.perform(asked, body);
    switch (asked.op) {
      case "open":
        return this.#open(asked);
      case "mark":
        return { value: refusable(() => this.#mark(asked, body)) };
      case "put-metadata":
        this.#metadata = body;
        return { value: {} };
      case "get-metadata":
        return { value: { isSet: this.#metadata !== undefined }, body: this.#metadata };
      case "changes":
        return this.#changes();
      case "exec":
        return this.#commands.run(asked, body);
      case "attach":
        return this.#commands.attach(asked);
      case "signal":
        return { value: { reached: this.#commands.find(asked.requestId).signal(signalOf(asked.signal)) } };
      case "cancel":
        this.#commands.find(asked.requestId).cancel();
        return { value: {} };
      case "await-process":
        return { value: { state: await this.#commands.awaitProcess(asked) } };
      case "upload":
        return { value: await this.#transfers.upload(asked, body) };
      case "upload-more":
        return { value: await this.#transfers.uploadMore(asked, body) };
      case "download":
        return this.#transfers.download(asked);
      case "download-more":
        return this.#transfers.downloadMore(asked.transfer);
      case "download-stop":
        this.#transfers.stopDownload(asked.transfer);
        return { value: {} };
      case "describe":
        return { value: { entries: asked.paths.map(describe) } };
      case "list":
        return listed(listRoot);
      case "kill-agents":
        return { value: { isEmpty: await killEverything(processesAround(this.#reaper)) } };
      case "status":
        return {
          value: {
            ...{ pid: process.pid, requests: this.#commands.list() },
            rssBytes: process.memoryUsage.rss(),
          },
        };
      case "shutdown":
        setImmediate(this.#end); // the answer goes first
        return { value: {} };
      default:
        return asked satisfies never;
    }
  }

  #open({ deadlineMs, made, fileLimitBytes }: RequestOf<"open">): ResponseOf<"open"> {
    // Whatever becomes of the driver, nothing here outlives the lease.
    this.#deadline?.cancel();
    this.#deadline = new DeadlineTimer(deadlineMs, this.#end);
    if (fileLimitBytes !== undefined) limitFileSize(fileLimitBytes);
    return { value: refusable(() => made.forEach(makeFolder)) };
  }

  #mark({ own }: RequestOf<"mark">, listing: Uint8Array): void {
    this.#baseline ??= new Baseline(listing, own);
  }

  #changes(): ResponseOf<"changes"> {
    const baseline = this.#baseline;
    if (baseline === undefined) throw new Error("changes since no mark");
    return listed(() => baseline.changes());
  }
}

function listed(list: () => Listing | Changes): ResponseOf<"list" | "changes"> {
  try {
    return { value: {}, body: Buffer.from(JSON.stringify(list())) };
  } catch (error) {
    return { value: refusalOf(error) };
  }
}

function signalOf(name: string): NodeJS.Signals {
  return name as NodeJS.Signals; // kill(2) refuses what is none
}

/**
 * As process 1 the daemon kills all others by one call of kill(2). Otherwise it sees processes that are not the sandbox's:
 * then only its descendants count, which it adopts.
 */
function processesAround(reaper: Reaper): SandboxProcesses {
  const living = () => {
    const entries = listProcesses();
    const parents = new Map(entries.map(({ pid, parent }) => [pid, parent]));
    const isOurs = (pid: number): boolean => {
      if (process.pid === 1) return pid !== 1;
      for (let at = parents.get(pid); at !== undefined && at !== 0; at = parents.get(at))
        if (at === process.pid) return true;
      return false;
    };
    return entries.filter(({ pid, isDead }) => !isDead && isOurs(pid));
  };
  return {
    living,
    killAll: async () => {
      if (process.pid === 1) sendSignal(-1, "SIGKILL");
      reaper.reapOrphans();
      return "somebody";
    },
    isGone: () => false,
  };
}
