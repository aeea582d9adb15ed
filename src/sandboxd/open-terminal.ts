// A terminal of the daemon, with a shell of the sandbox in it.
import { PseudoTerminal } from "../sandbox/pseudo-terminal.ts";
import { closeOnExec } from "./kernel.ts";
import { withCommandScore } from "./oom-score.ts";
import type { RequestOf } from "./protocol.ts";
import type { Reaper } from "./reaper.ts";
import { Refusal } from "./refusal.ts";
import { findUser, withHome } from "./users.ts";

/** @throws Refusal when there is no such user */
export function openTerminal(request: RequestOf<"terminal-open">, reaper: Reaper): PseudoTerminal {
  const { argv, env, cwd, user: name } = request;
  const user = name === undefined ? undefined : findUser(name);
  if (name !== undefined && user === undefined) throw new Refusal(`there is no user ${name}`);
  const terminal = withCommandScore(
    () =>
      new PseudoTerminal(argv, request, {
        ...{ env: withHome(env, user), cwd, owner: user, isRunByOwner: user !== undefined },
        ...{ onOpen: closeOnExec, signal: signalShell },
      }),
  );
  const disown = reaper.own(terminal.pid);
  void terminal.closed.then(disown);
  return terminal;
}

/** The shell leads a session, and its group. */
function signalShell(pid: number, signal: "SIGHUP" | "SIGKILL"): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, signal);
    } catch {
      // it has ended
    }
  }
}
