// The driver's end of the keeper of its terminals.
import { type ChildProcess, fork } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../../../failure/errors.ts";
import { openRunFolder } from "../../run-folder.ts";
import { BackgroundProcess } from "../background-process.ts";
import {
  type CallName,
  decodeError,
  type KeeperCalls,
  KeeperReply,
  type KeeperRequest,
} from "./keeper-protocol.ts";

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export class KeeperClient {
  readonly #process: ChildProcess;
  readonly #background: BackgroundProcess;
  readonly #exited = Promise.withResolvers<void>();
  readonly #pending = new Map<number, Pending>();
  #lastCall = 0;
  #isGone = false;

  constructor() {
    this.#process = fork(new URL("./keeper.ts", import.meta.url), {
      serialization: "advanced",
      execArgv: [],
      // Nothing of this process's own: no key or token comes near a sandbox.
      env: { NODE_COMPILE_CACHE: compileCache() },
      cwd: "/",
      // An interrupt from the keyboard is for the driver, which then ends its sandboxes in order.
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#process.on("message", message => this.#receive(KeeperReply.parse(message)));
    this.#process.on("exit", () => this.#lose());
    this.#process.on("error", () => this.#lose()); // it could not be started
    this.#background = new BackgroundProcess(() => [this.#process, this.#process.channel]);
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** @throws what the keeper's side throws; Failure SandboxLost when the keeper ends before it has answered */
  async call<Name extends CallName>(
    name: Name,
    args: Parameters<KeeperCalls[Name]>,
  ): Promise<Awaited<ReturnType<KeeperCalls[Name]>>> {
    if (this.#isGone) throw lost();
    this.#lastCall += 1;
    const call = this.#lastCall;
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(call, { resolve, reject });
      this.#send({ call, name, args });
    });
    try {
      // The keeper's handler of this name has this type.
      return (await this.#background.awaited(answered)) as Awaited<ReturnType<KeeperCalls[Name]>>;
    } finally {
      this.#pending.delete(call);
    }
  }

  /** Ends the process, and with it whatever it still keeps. */
  async close(): Promise<void> {
    if (this.#isGone) return;
    if (this.#process.connected) this.#process.disconnect();
    // It comes some time after the end of the channel.
    await this.#background.awaited(this.#exited.promise);
  }

  /** What cannot be sent any more is answered by the keeper's end. */
  #send(request: KeeperRequest): void {
    if (this.#process.connected) this.#process.send(request, () => undefined);
  }

  #receive(reply: KeeperReply): void {
    const pending = this.#pending.get(reply.call);
    if (reply.kind === "result") pending?.resolve(reply.result);
    else pending?.reject(decodeError(reply.error));
  }

  #lose(): void {
    this.#isGone = true;
    for (const { reject } of this.#pending.values()) reject(lost());
    this.#exited.resolve();
  }
}

/**
 * Where Node keeps what it compiled, which starts the next keeper three times as fast. Code is loaded from there, so only
 * a folder that nobody else can write will do; else there is none.
 */
function compileCache(): string | undefined {
  try {
    return join(openRunFolder(tmpdir()).path, "compile-cache");
  } catch {
    return undefined; // sandboxes need such a folder too, and whoever makes one says what is wrong with it
  }
}

function lost(): Failure {
  return new Failure("SandboxLost", "the process that kept the terminals has ended", { retryable: true });
}
