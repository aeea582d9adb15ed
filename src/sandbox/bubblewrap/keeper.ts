// A small process that keeps the sandboxes of one driver. An agent's endless output keeps this process busy, not the
// driver. And to start a program, Node copies the page tables of the whole process, and everything in it waits: with 2 GB
// of model in memory 50 ms, here 1 ms. When the driver dies the channel closes, this process exits, and with it go the
// sandboxes (spawner/).
import { Failure, InvariantError } from "../../failure/errors.ts";
import type { Sandbox, Terminal } from "../sandbox.ts";
import {
  type CallName,
  Cancelled,
  encodeError,
  type KeeperCalls,
  type KeeperReply,
  KeeperRequest,
} from "./keeper-protocol.ts";
import { createLocalProvider, type LocalProvider } from "./local-provider.ts";

type Handlers = {
  readonly [Name in CallName]: (
    signal: AbortSignal,
    ...args: Parameters<KeeperCalls[Name]>
  ) => ReturnType<KeeperCalls[Name]>;
};

const LEAVE_PATIENCE_MS = 2_000;

let opened: LocalProvider | undefined;
const sandboxes = new Map<number, Sandbox>();
const terminals = new Map<number, Terminal>();
const running = new Map<number, AbortController>();
let lastNumber = 0;

const handlers: Handlers = {
  open: async (_, runParent) => {
    opened = createLocalProvider(runParent);
  },
  create: async (_, spec, lease) => numbered(sandboxes, await provider().create(spec, lease)),
  sweep: () => provider().sweep(),
  dispose: async () => provider()[Symbol.asyncDispose](),
  exec: (signal, number, command, options) => sandbox(number).exec(command, { ...options, signal }),
  upload: (_, number, tar, folder, options) => sandbox(number).upload(tar, folder, options),
  download: (_, number, folder, limitBytes) => sandbox(number).download(folder, limitBytes),
  killAgents: (_, number) => sandbox(number).killAgents(),
  changedFiles: (_, number) => sandbox(number).changedFiles(),
  successor: async (_, number, lease, options) => {
    const made = await sandbox(number).successor(lease, options);
    return "refused" in made ? made : numbered(sandboxes, made);
  },
  end: async (_, number) => {
    await sandboxes.get(number)?.[Symbol.asyncDispose]();
    sandboxes.delete(number);
  },
  openTerminal: async (_, number, options) => numbered(terminals, await sandbox(number).terminal(options)),
  send: (_, number, keys) => terminal(number).send(keys),
  readNew: (_, number) => terminal(number).readNew(),
  screen: (_, number) => terminal(number).screen(),
  view: (_, number) => terminal(number).view(),
  resize: (_, number, columns, rows) => terminal(number).resize(columns, rows),
  closed: async (_, number) => terminal(number).closed,
  closeTerminal: async (_, number) => terminal(number)[Symbol.asyncDispose](),
};

process.on("disconnect", () => void leave());
process.on("message", message => {
  const request = KeeperRequest.parse(message);
  if (request.kind === "cancel") running.get(request.call)?.abort(new Cancelled());
  else void answer(request);
});

/** In order, so that no file is left either; and at last without, so that nothing is ever kept for nobody. */
async function leave(): Promise<void> {
  setTimeout(() => process.exit(), LEAVE_PATIENCE_MS);
  await opened?.[Symbol.asyncDispose]().catch(() => undefined);
  process.exit();
}

async function answer({ call, name, args }: Extract<KeeperRequest, { kind: "call" }>): Promise<void> {
  const control = new AbortController();
  running.set(call, control);
  try {
    if (!isCallName(name)) throw new InvariantError("no such call", { name });
    // The driver's side has checked the arguments against the same types.
    const handle = handlers[name] as (signal: AbortSignal, ...args: unknown[]) => Promise<unknown>;
    reply({ kind: "result", call, result: await handle(control.signal, ...args) });
  } catch (error) {
    reply({ kind: "error", call, error: encodeError(error) });
  } finally {
    running.delete(call);
  }
}

function reply(message: KeeperReply): void {
  // A driver that is gone reads no answer, and the disconnect ends this process.
  process.send?.(message, undefined, undefined, () => undefined);
}

function isCallName(name: string): name is CallName {
  return Object.hasOwn(handlers, name);
}

function provider(): LocalProvider {
  if (opened === undefined) throw new InvariantError("the keeper is not open");
  return opened;
}

/** The same thing keeps its number: one lease may be asked for twice. */
function numbered<Thing>(things: Map<number, Thing>, thing: Thing): number {
  for (const [number, other] of things) if (other === thing) return number;
  lastNumber += 1;
  things.set(lastNumber, thing);
  return lastNumber;
}

function sandbox(number: number): Sandbox {
  const found = sandboxes.get(number);
  if (found === undefined)
    throw new Failure("SandboxLost", "the sandbox was disposed of", { retryable: true });
  return found;
}

function terminal(number: number): Terminal {
  const found = terminals.get(number);
  if (found === undefined) throw new InvariantError("no such terminal", { number });
  return found;
}
