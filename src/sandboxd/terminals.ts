// The terminals of one process, by the names that drivers gave them: of a daemon, or of the terminal host beside a driver.
import { InvariantError } from "../failure/errors.ts";
import type { PseudoTerminal } from "../sandbox/pseudo-terminal.ts";
import { sizesOf } from "./captured-sizes.ts";
import type { Answer, Operation, RequestOf, ResponseOf, TerminalOperation } from "./protocol.ts";
import { reasonOf } from "./refusal.ts";

export function isOfTerminal(operation: Operation): operation is TerminalOperation {
  return operation.op.startsWith("terminal-");
}

export class Terminals {
  readonly #start: (request: RequestOf<"terminal-open">) => PseudoTerminal;
  readonly #terminals = new Map<string, PseudoTerminal>();

  /** @param start throws when there is no terminal or process left; that is a refusal */
  constructor(start: (request: RequestOf<"terminal-open">) => PseudoTerminal) {
    this.#start = start;
  }

  /** @throws for a terminal that is not there; closing one is no error then */
  async perform(operation: TerminalOperation, body: Uint8Array): Promise<ResponseOf> {
    if (operation.op === "terminal-open") return { value: this.#open(operation) };
    const { terminal: name } = operation;
    const terminal = this.#terminals.get(name);
    if (terminal === undefined) {
      if (operation.op === "terminal-close") return { value: {} };
      throw new Error(`no such terminal: ${name}`);
    }
    switch (operation.op) {
      case "terminal-send":
        return { value: { taken: await terminal.send(body) } };
      case "terminal-read": {
        const output = await terminal.readNew();
        return { value: sizesOf(output), body: Buffer.concat([output.head, output.tail]) };
      }
      case "terminal-view": {
        const { history, screen, applicationCursorKeys } = await terminal.view();
        return { value: { history: [...history], screen: [...screen], applicationCursorKeys } };
      }
      case "terminal-resize":
        await terminal.resize(operation.columns, operation.rows);
        return { value: {} };
      case "terminal-closed":
        await terminal.closed;
        return { value: {} };
      case "terminal-kill":
        await terminal.kill();
        return { value: {} };
      case "terminal-close":
        await terminal[Symbol.asyncDispose]();
        this.#terminals.delete(name);
        return { value: {} };
      default:
        return operation satisfies never;
    }
  }

  #open(request: RequestOf<"terminal-open">): Answer<"terminal-open"> {
    if (this.#terminals.has(request.terminal)) return {};
    try {
      this.#terminals.set(request.terminal, this.#start(request));
      return {};
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      return { refused: error instanceof Error ? error.message : reasonOf(error) };
    }
  }
}
