// Terminals of a driver's sandboxes, in a process beside it that is started with the first of them.
import { randomUUID } from "node:crypto";
import { Failure } from "../../../failure/errors.ts";
import { RemoteTerminal } from "../../../sandboxd/remote-terminal.ts";
import { DEFAULT_OUTPUT_LIMIT_BYTES } from "../../command-request.ts";
import type { TerminalOptions } from "../../sandbox.ts";
import { TerminalHostClient } from "./terminal-host-client.ts";

/** A program that is started in a terminal, outside of the sandbox that it enters. */
export interface TerminalProgram {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The owner of the terminal device, when it is not the user of this process. */
  readonly owner: { readonly uid: number; readonly gid: number } | undefined;
}

export class HostedTerminals {
  #host: TerminalHostClient | undefined;

  /**
   * Should the host have ended by accident, its terminals are lost and the next ones have another host.
   *
   * @throws Failure SandboxLost when it ends meanwhile; Failure SandboxUnavailable when this machine has no terminal left
   */
  async open({ words, env, owner }: TerminalProgram, options: TerminalOptions): Promise<RemoteTerminal> {
    if (this.#host === undefined || this.#host.isGone) this.#host = new TerminalHostClient();
    const host = this.#host;
    const terminal = randomUUID();
    const { columns, rows, historyLines, outputLimitBytes = DEFAULT_OUTPUT_LIMIT_BYTES } = options;
    const { value } = await host.call<"terminal-open">({
      ...{ op: "terminal-open", terminal, argv: [...words], env: { ...env }, cwd: "/" },
      ...{ columns, rows, historyLines, outputLimitBytes },
      user: owner && `${owner.uid}:${owner.gid}`,
    });
    if (value.refused !== undefined)
      throw new Failure("SandboxUnavailable", `this machine has no terminal: ${value.refused}`, {
        retryable: true,
      });
    return new RemoteTerminal(host, terminal, outputLimitBytes);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#host?.close();
  }
}
