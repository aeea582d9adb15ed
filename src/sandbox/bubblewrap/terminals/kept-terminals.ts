// Terminals of a driver's sandboxes, in a process beside it that is started with the first of them.
import type { CapturedOutput, Terminal, TerminalOptions, TerminalView } from "../../sandbox.ts";
import { KeeperClient } from "./keeper-client.ts";
import type { TerminalProgram } from "./keeper-protocol.ts";

export class KeptTerminals {
  #keeper: KeeperClient | undefined;

  /**
   * Should the keeper have ended by accident, its terminals are lost and the next have another.
   *
   * @throws Failure SandboxLost when it ends meanwhile; Failure SandboxUnavailable when this machine has no terminal left
   */
  async open(program: TerminalProgram, options: TerminalOptions): Promise<KeptTerminal> {
    if (this.#keeper === undefined || this.#keeper.isGone) this.#keeper = new KeeperClient();
    const keeper = this.#keeper;
    return new KeptTerminal(keeper, await keeper.call("open", [program, options]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#keeper?.close();
  }
}

export class KeptTerminal implements Terminal {
  readonly #keeper: KeeperClient;
  readonly #number: number;
  #closed: Promise<void> | undefined;
  #disposing: Promise<void> | undefined;

  constructor(keeper: KeeperClient, number: number) {
    this.#keeper = keeper;
    this.#number = number;
  }

  /** Asked for when somebody wants to know: whoever waits for an answer keeps the driver alive. */
  get closed(): Promise<void> {
    // A terminal whose keeper is gone is closed too.
    this.#closed ??= this.#keeper.call("closed", [this.#number]).catch(() => undefined);
    return this.#closed;
  }

  send(keys: string | Uint8Array): Promise<number> {
    return this.#keeper.call("send", [this.#number, keys]);
  }

  readNew(): Promise<CapturedOutput> {
    return this.#keeper.call("readNew", [this.#number]);
  }

  screen(): Promise<readonly string[]> {
    return this.#keeper.call("screen", [this.#number]);
  }

  view(): Promise<TerminalView> {
    return this.#keeper.call("view", [this.#number]);
  }

  resize(columns: number, rows: number): Promise<void> {
    return this.#keeper.call("resize", [this.#number, columns, rows]);
  }

  /** Ends its shell. What it has shown can still be read. */
  kill(): Promise<void> {
    return this.#disposing ?? this.#end("kill");
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#end("close");
    return this.#disposing;
  }

  /** With its keeper it has ended too. */
  async #end(how: "kill" | "close"): Promise<void> {
    try {
      await this.#keeper.call(how, [this.#number]);
    } catch (error) {
      if (!this.#keeper.isGone) throw error;
    }
  }
}
