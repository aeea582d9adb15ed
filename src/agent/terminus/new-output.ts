// The output of a terminal since the last look, as Terminus-2 tells it. Behaviour: Harbor 0.26,
// agents/terminus_2/tmux_session.py, whose buffer is that of `tmux capture-pane`.
import type { TerminalView } from "../../sandbox/sandbox.ts";
import { stripSpace } from "../../task/strip-space.ts";

export class OutputReader {
  #previous: string | undefined;

  /**
   * When everything seen before is still there: from its last line on, which a program may have gone on writing. Else,
   * and when nothing is new, the screen; its blank rows are kept.
   */
  read(view: TerminalView): string {
    const whole = linesText([...view.history, ...view.screen]);
    const fresh = this.#previous === undefined ? "" : newPart(stripSpace(this.#previous), whole);
    this.#previous = whole;
    if (stripSpace(fresh) !== "") return `New Terminal Output:\n${fresh}`;
    return `Current Terminal Screen:\n${screenText(view)}`;
  }
}

export function screenText({ screen }: Pick<TerminalView, "screen">): string {
  return linesText(screen);
}

/**
 * Only what stands at the top is surely what was seen before: once old lines are forgotten, a program that prints the
 * same again would be taken for one that printed nothing.
 */
function newPart(previous: string, whole: string): string {
  const at = whole.indexOf(previous);
  if (at === -1 || stripSpace(whole.slice(0, at)) !== "") return "";
  return whole.slice(at + Math.max(0, previous.lastIndexOf("\n")));
}

function linesText(lines: readonly string[]): string {
  return lines.map(line => `${line}\n`).join("");
}
