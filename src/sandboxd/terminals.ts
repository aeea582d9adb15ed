// The terminals of a daemon, by the names that drivers gave them.
import { PseudoTerminal } from "../sandbox/pseudo-terminal.ts";
import type { Asked } from "./answered.ts";
import { closeOnExec } from "./kernel.ts";
import { withCommandScore } from "./oom-score.ts";
import type { Answer } from "./protocol.ts";
import type { Reaper } from "./reaper.ts";
import { refusable } from "./refusal.ts";
import { findUser, withHome } from "./users.ts";

export class Terminals {
  readonly #reaper: Reaper;
  readonly #terminals = new Map<string, PseudoTerminal>();

  constructor(reaper: Reaper) {
    this.#reaper = reaper;
  }

  open(asked: Asked<"terminal-open">): Answer<"terminal-open"> {
    if (this.#terminals.has(asked.terminal)) return {};
    const user = asked.user === undefined ? undefined : findUser(asked.user);
    if (asked.user !== undefined && user === undefined) return { refused: `there is no user ${asked.user}` };
    return refusable(() => {
      const terminal = withCommandScore(
        () =>
          new PseudoTerminal(asked.argv, asked, {
            env: withHome(asked.env, user),
            cwd: asked.cwd,
            owner: user,
            isRunByOwner: user !== undefined,
            onOpen: closeOnExec,
            signal: signalTerminal,
          }),
      );
      const disown = this.#reaper.own(terminal.pid);
      void terminal.closed.then(disown);
      this.#terminals.set(asked.terminal, terminal);
    });
  }

  /** @throws when there is none */
  find(name: string): PseudoTerminal {
    const terminal = this.#terminals.get(name);
    if (terminal === undefined) throw new Error(`no such terminal: ${name}`);
    return terminal;
  }

  /** One that is not there is no error. */
  async close(name: string): Promise<void> {
    await this.#terminals.get(name)?.[Symbol.asyncDispose]();
    this.#terminals.delete(name);
  }
}

/** The shell leads a session, and its group. */
function signalTerminal(pid: number, signal: "SIGHUP" | "SIGKILL"): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, signal);
    } catch {
      // it has ended
    }
  }
}
