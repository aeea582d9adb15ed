// Dead orphans of commands. They become children of the daemon, and a process that nobody waits for keeps its number:
// without this a sandbox would run out of processes. Node waits for its own children only.
import { peekDeadChild, reap } from "./kernel.ts";

/** Until Node, which is told at the same time, has waited for a child of its own that is in front. */
const OWN_CHILD_MS = 20;

export class Reaper {
  /** Children that Node or node-pty waits for. */
  readonly #own = new Set<number>();
  #timer: NodeJS.Timeout | undefined;

  start(): void {
    process.on("SIGCHLD", () => this.reapOrphans());
  }

  /** Call it in the same turn in which the child was started. @returns call it when its end is known */
  own(pid: number): () => void {
    this.#own.add(pid);
    return () => {
      this.#own.delete(pid);
      this.reapOrphans();
    };
  }

  reapOrphans(): void {
    clearTimeout(this.#timer);
    for (let pid = peekDeadChild(); pid !== undefined; pid = peekDeadChild()) {
      if (this.#own.has(pid)) {
        this.#timer = setTimeout(() => this.reapOrphans(), OWN_CHILD_MS);
        return;
      }
      reap(pid);
    }
  }
}
