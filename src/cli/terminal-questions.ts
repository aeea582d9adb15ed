// What a program prints to a terminal, without its questions. A terminal answers those as if somebody typed: a sandbox's
// own terminal has answered already, and the answer of a person's would be typed into the sandbox once more.
// Sources: https://vt100.net/emu/dec_ansi_parser, https://invisible-island.net/xterm/ctlseqs/ctlseqs.html

type State = "text" | "escape" | "control" | "command" | "header" | "passed" | "dropped";

/** Longer commands (OSC) are no titles, links or colours; they are dropped whole. */
const MAX_COMMAND_CHARACTERS = 1 << 20;

const [ENQ, BEL, CAN, SUB, ESC] = ["\x05", "\x07", "\x18", "\x1a", "\x1b"];
/** C1 controls stand for ESC and a letter; in UTF-8 they are two bytes, of which this is the first. */
const C1_LEAD = "\xc2";

export class QuestionFilter {
  #state: State = "text";
  /** Of a sequence whose end has not come. */
  #held = "";
  #hasLead = false;

  /** @param text one character per byte; sequences may go on in the next text. @returns what is left of it */
  pass(text: string): string {
    let out = "";
    for (const byte of text) {
      if (this.#hasLead) {
        this.#hasLead = false;
        const isC1 = byte >= "\x80" && byte <= "\x9f";
        if (isC1) out += this.#next(ESC) + this.#next(String.fromCharCode(byte.charCodeAt(0) - 0x40));
        else out += this.#next(C1_LEAD);
        if (isC1) continue;
      }
      if (byte === C1_LEAD) this.#hasLead = true;
      else out += this.#next(byte);
    }
    return out;
  }

  #next(byte: string): string {
    if (byte === CAN || byte === SUB) return this.#end("");
    // Also within a sequence: it ends there, and a command counts as far as it came.
    if (byte === ESC) {
      const before = this.#state === "command" ? this.#endCommand() : "";
      this.#state = "escape";
      this.#held = ESC;
      return before;
    }
    switch (this.#state) {
      case "text":
        return byte === ENQ ? "" : byte;
      case "passed":
        return byte;
      case "dropped":
        return "";
      case "command":
        return this.#inCommand(byte);
      default:
        return this.#inSequence(this.#state, byte);
    }
  }

  #inSequence(state: "escape" | "control" | "header", byte: string): string {
    // A control character in a sequence does what it does elsewhere; the sequence goes on behind it.
    if (byte < " ") return byte === ENQ ? "" : byte;
    if (byte > "~") return this.#end(byte);
    this.#held += byte;
    if (byte < "0" || (state !== "escape" && byte < "@")) return "";
    if (state === "control") return this.#end(isControlQuestion(this.#held) ? "" : this.#held);
    if (state === "header") return this.#endHeader();
    return this.#endEscape();
  }

  #endEscape(): string {
    switch (this.#held.slice(1)) {
      case "[":
        this.#state = "control";
        return "";
      case "]":
        this.#state = "command";
        return "";
      case "P":
        this.#state = "header";
        return "";
      // Strings for applications: what answers to any of them may be a question.
      case "_":
      case "^":
      case "X":
        this.#state = "dropped";
        return "";
      // DECID, the oldest question
      case "Z":
        return this.#end("");
      default:
        return this.#end(this.#held);
    }
  }

  /** Requests for settings (DECRQSS) and capabilities; images and the like pass. */
  #endHeader(): string {
    const isQuestion = /[$+]/.test(this.#held);
    this.#state = isQuestion ? "dropped" : "passed";
    return isQuestion ? "" : this.#held;
  }

  #inCommand(byte: string): string {
    if (byte === BEL) {
      const ended = this.#endCommand();
      return ended === "" ? "" : `${ended}${BEL}`;
    }
    this.#held += byte;
    if (this.#held.length > MAX_COMMAND_CHARACTERS) this.#state = "dropped";
    return "";
  }

  #endCommand(): string {
    return this.#end(isCommandQuestion(this.#held.slice(2)) ? "" : this.#held);
  }

  #end(rest: string): string {
    this.#state = "text";
    this.#held = "";
    return rest;
  }
}

/** @param sequence ESC [ and parameters, intermediates and a final letter */
function isControlQuestion(sequence: string): boolean {
  const [, prefix = "", parameters = "", between = "", final = ""] =
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what it takes apart
    /^\x1b\[([<=>?]?)([0-?]*)([ -/]*)([@-~])$/.exec(sequence) ?? [];
  switch (`${prefix}${between}${final}`) {
    // Status and the cursor's place (DSR), kind (DA), version, parameters, a mode, keys, graphics
    case "n":
    case "?n":
    case "c":
    case ">c":
    case "=c":
    case ">q":
    case "x":
    case "$p":
    case "?$p":
    case "?u":
    case "?m":
    case "?g":
    case "?S":
    // Tables, checksums, colours, where the mouse is
    case "$w":
    case "$u":
    case "&u":
    case "*y":
    case "#R":
    case "#|":
    case "'|":
      return true;
    // The window, its size and its title
    case "t":
      return /^0*(?:1[1-9]|2[01])(?:;|$)/.test(parameters);
    default:
      return false;
  }
}

/** @param text of a command (OSC): its number and what it is given; a question mark asks for it */
function isCommandQuestion(text: string): boolean {
  // Titles and links hold any text.
  if (/^0*[0128](?:;|$)/.test(text)) return false;
  return /[;=:]\?(?:[;:]|$)/.test(text) || /^0*(?:60|61|1337;(?:Report|Request|Capabilities))/.test(text);
}
