// A small process that has the terminals of one driver. An agent's endless output keeps this process busy, not the driver.
// And to start a program in a terminal, Node copies the page tables of the whole process, and everything in it waits: with
// 2 GB of model in memory 50 ms, here 1 ms. When the driver dies the channel closes, and this process exits.

import { Terminals } from "../../../sandboxd/terminals.ts";
import { PseudoTerminal } from "../../pseudo-terminal.ts";
import { signalTerminal } from "../signal-terminal.ts";
import type { HostReply, HostRequest } from "./terminal-host-client.ts";

const terminals = new Terminals(
  ({ argv, env, user, ...options }) =>
    // The program becomes the user by itself, when it has entered the sandbox; here only the terminal device is his.
    new PseudoTerminal(argv, options, { env, owner: ownerOf(user), signal: signalTerminal }),
);

process.on("disconnect", () => process.exit());
// Neither side looks into what the other says: both are this program in one version.
process.on("message", message => void answer(message as HostRequest));

async function answer({ id, operation, body }: HostRequest): Promise<void> {
  try {
    reply({ id, response: await terminals.perform(operation, body ?? new Uint8Array(0)) });
  } catch (error) {
    reply({ id, bug: error instanceof Error ? (error.stack ?? error.message) : `${error}` });
  }
}

function reply(message: HostReply): void {
  // A driver that is gone reads no answer, and the disconnect ends this process.
  process.send?.(message, undefined, undefined, () => undefined);
}

/** @param user `uid:gid` */
function ownerOf(user: string | undefined): { readonly uid: number; readonly gid: number } | undefined {
  if (user === undefined) return undefined;
  const [uid = 0, gid = 0] = user.split(":").map(Number);
  return { uid, gid };
}
