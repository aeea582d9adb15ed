// A small process that keeps the terminals of one driver. An agent's endless output keeps this process busy, not the
// driver. And to start a program in a terminal, Node copies the page tables of the whole process, and everything in it
// waits: with 2 GB of model in memory 50 ms, here 1 ms. When the driver dies the channel closes, and this process exits.
import { Failure, InvariantError } from "../../../failure/errors.ts";
import { PseudoTerminal } from "../../pseudo-terminal.ts";
import type { TerminalOptions } from "../../sandbox.ts";
import { signalTerminal } from "../signal-terminal.ts";
import {
  type CallName,
  encodeError,
  type KeeperCalls,
  type KeeperReply,
  KeeperRequest,
  type TerminalProgram,
} from "./keeper-protocol.ts";

const terminals = new Map<number, PseudoTerminal>();
let lastNumber = 0;

const handlers: KeeperCalls = {
  open: async (program, options) => {
    const opened = start(program, options);
    lastNumber += 1;
    terminals.set(lastNumber, opened);
    return lastNumber;
  },
  send: (number, keys) => terminal(number).send(keys),
  readNew: number => terminal(number).readNew(),
  screen: number => terminal(number).screen(),
  view: number => terminal(number).view(),
  resize: (number, columns, rows) => terminal(number).resize(columns, rows),
  closed: async number => terminal(number).closed,
  kill: number => terminal(number).kill(),
  close: async number => {
    await terminal(number)[Symbol.asyncDispose]();
    terminals.delete(number);
  },
};

process.on("disconnect", () => process.exit());
process.on("message", message => void answer(KeeperRequest.parse(message)));

async function answer({ call, name, args }: KeeperRequest): Promise<void> {
  try {
    if (!isCallName(name)) throw new InvariantError("no such call", { name });
    // The driver's side has checked the arguments against the same types.
    const handle = handlers[name] as (...args: unknown[]) => Promise<unknown>;
    reply({ kind: "result", call, result: await handle(...args) });
  } catch (error) {
    reply({ kind: "error", call, error: encodeError(error) });
  }
}

function reply(message: KeeperReply): void {
  // A driver that is gone reads no answer, and the disconnect ends this process.
  process.send?.(message, undefined, undefined, () => undefined);
}

function isCallName(name: string): name is CallName {
  return Object.hasOwn(handlers, name);
}

function start({ words, env, owner }: TerminalProgram, options: TerminalOptions): PseudoTerminal {
  try {
    return new PseudoTerminal(words, options, { env, owner, signal: signalTerminal });
  } catch (error) {
    if (error instanceof InvariantError) throw error;
    // node-pty does not say why: no terminal device, process or descriptor is left.
    const detail = `this machine has no terminal: ${error}`;
    throw new Failure("SandboxUnavailable", detail, { retryable: true, cause: error });
  }
}

function terminal(number: number): PseudoTerminal {
  const found = terminals.get(number);
  if (found === undefined) throw new Failure("SandboxLost", "the terminal was closed", { retryable: true });
  return found;
}
