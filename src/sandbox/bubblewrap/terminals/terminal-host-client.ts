// The driver's end of the terminal host: calls over Node's channel between parent and child.
import { type ChildProcess, fork } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure, InvariantError } from "../../../failure/errors.ts";
import type { Called } from "../../../sandboxd/client.ts";
import type { RequestOf, ResponseOf, TerminalOperation } from "../../../sandboxd/protocol.ts";
import type { TerminalCaller } from "../../../sandboxd/remote-terminal.ts";
import { openRunFolder } from "../../run-folder.ts";
import { BackgroundProcess } from "../background-process.ts";

export interface HostRequest {
  readonly id: number;
  readonly operation: TerminalOperation;
  readonly body: Uint8Array | undefined;
}
export type HostReply =
  | { readonly id: number; readonly response: ResponseOf }
  | { readonly id: number; readonly bug: string };

interface Pending {
  resolve(response: ResponseOf): void;
  reject(error: Error): void;
}

export class TerminalHostClient implements TerminalCaller {
  readonly #process: ChildProcess;
  readonly #background: BackgroundProcess;
  readonly #exited = Promise.withResolvers<void>();
  readonly #pending = new Map<number, Pending>();
  #lastCall = 0;
  #isGone = false;

  constructor() {
    this.#process = fork(new URL("./terminal-host.ts", import.meta.url), {
      serialization: "advanced",
      execArgv: [],
      // Nothing of this process's own: no key or token comes near a sandbox.
      env: { NODE_COMPILE_CACHE: compileCache() },
      cwd: "/",
      // An interrupt from the keyboard is for the driver, which then ends its sandboxes in order.
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#process.on("message", message => this.#receive(message as HostReply));
    this.#process.on("exit", () => this.#lose());
    this.#process.on("error", () => this.#lose()); // it could not be started
    this.#background = new BackgroundProcess(() => [this.#process, this.#process.channel]);
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** @throws Failure SandboxLost when the host ends before it has answered; InvariantError for a bug of it */
  async call<Op extends TerminalOperation["op"]>(
    operation: RequestOf<Op>,
    body?: Uint8Array,
  ): Promise<Called<Op>> {
    if (this.#isGone) throw lost();
    this.#lastCall += 1;
    const id = this.#lastCall;
    const answered = new Promise<ResponseOf>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#send({ id, operation, body });
    });
    try {
      const { value, body: bytes } = await this.#background.awaited(answered);
      return { value: value as Called<Op>["value"], body: bytes ?? new Uint8Array(0) }; // the response to this operation
    } finally {
      this.#pending.delete(id);
    }
  }

  distrust(detail: string): InvariantError {
    return new InvariantError(`the terminal host ${detail}`);
  }

  /** Ends the process, and with it whatever it still has. */
  async close(): Promise<void> {
    if (this.#isGone) return;
    if (this.#process.connected) this.#process.disconnect();
    // It comes some time after the end of the channel.
    await this.#background.awaited(this.#exited.promise);
  }

  /** A request that can no longer be sent fails when the host's end is heard. */
  #send(request: HostRequest): void {
    if (this.#process.connected) this.#process.send(request, () => undefined);
  }

  #receive(reply: HostReply): void {
    const pending = this.#pending.get(reply.id);
    if ("bug" in reply) pending?.reject(new InvariantError(reply.bug));
    else pending?.resolve(reply.response);
  }

  #lose(): void {
    this.#isGone = true;
    for (const { reject } of this.#pending.values()) reject(lost());
    this.#exited.resolve();
  }
}

/**
 * Where Node keeps what it compiled, which starts the next host three times as fast. Code is loaded from there, so only
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
  return new Failure("SandboxLost", "the process that had the terminals has ended", { retryable: true });
}
