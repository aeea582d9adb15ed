// Names of keys as `tmux send-keys` takes them: a whole string that is one is that key, anything else is typed as it is.
// Measured on tmux 3.3a (test/agent/fixtures/tmux-keys.json); source of the names: tmux(1), "KEY BINDINGS". Home and End
// are sent as xterm does, which is what programs here are told to expect.

const CURSOR_KEYS: Readonly<Record<string, string>> = {
  up: "A",
  down: "B",
  right: "C",
  left: "D",
  home: "H",
  end: "F",
};
/** VT-style keys: ESC [ number ~ */
const NUMBERED_KEYS: Readonly<Record<string, number>> = {
  ic: 2,
  insert: 2,
  dc: 3,
  delete: 3,
  ppage: 5,
  pageup: 5,
  pgup: 5,
  npage: 6,
  pagedown: 6,
  pgdn: 6,
  f5: 15,
  f6: 17,
  f7: 18,
  f8: 19,
  f9: 20,
  f10: 21,
  f11: 23,
  f12: 24,
};
/** ESC O letter */
const FUNCTION_KEYS: Readonly<Record<string, string>> = { f1: "P", f2: "Q", f3: "R", f4: "S" };
const PLAIN_KEYS: Readonly<Record<string, string>> = {
  enter: "\r",
  escape: "\x1b",
  space: " ",
  tab: "\t",
  bspace: "\x7f",
  kpenter: "\n",
  "kp/": "/",
  "kp*": "*",
  "kp-": "-",
  "kp+": "+",
  "kp.": ".",
  ...Object.fromEntries(Array.from({ length: 10 }, (_, digit) => [`kp${digit}`, `${digit}`])),
};
/** Control characters of keys that are no letters; tmux sends nothing for other keys. */
const CONTROL: Readonly<Record<string, string>> = {
  "@": "\0",
  " ": "\0",
  "2": "\0",
  "[": "\x1b",
  "\\": "\x1c",
  "]": "\x1d",
  "^": "\x1e",
  _: "\x1f",
  "/": "\x1f",
  "-": "\x1f",
  "?": "\x7f",
};

interface Modifiers {
  readonly ctrl: boolean;
  readonly meta: boolean;
  readonly shift: boolean;
}

/** @returns what a keyboard would send: for the name of a key that key, else the text itself */
export function keyboardInput(text: string, applicationCursorKeys: boolean): string {
  return namedKey(text, applicationCursorKeys) ?? text;
}

function namedKey(text: string, applicationCursorKeys: boolean): string | undefined {
  const hex = /^0x([0-9a-fA-F]{1,6})$/.exec(text)?.[1];
  if (hex !== undefined) {
    const code = Number.parseInt(hex, 16);
    return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : undefined;
  }
  const { rest, ctrl, meta, shift } = readModifiers(text);
  const modifiers = { ctrl, meta, shift };
  if ([...rest].length === 1) return characterKey(rest, modifiers);
  const name = rest.toLowerCase();
  const modifier = 1 + Number(shift) + 2 * Number(meta) + 4 * Number(ctrl);
  const cursor = CURSOR_KEYS[name];
  if (cursor !== undefined) {
    if (modifier > 1) return `\x1b[1;${modifier}${cursor}`;
    return applicationCursorKeys ? `\x1bO${cursor}` : `\x1b[${cursor}`;
  }
  const number = NUMBERED_KEYS[name];
  if (number !== undefined) return modifier > 1 ? `\x1b[${number};${modifier}~` : `\x1b[${number}~`;
  const letter = FUNCTION_KEYS[name];
  if (letter !== undefined) return modifier > 1 ? `\x1b[1;${modifier}${letter}` : `\x1bO${letter}`;
  if (name === "btab") return modifier === 1 ? "\x1b[Z" : undefined;
  const plain = PLAIN_KEYS[name];
  if (plain === undefined || shift || (ctrl && meta)) return undefined;
  if (ctrl) return plain === " " ? "\0" : "";
  return meta ? `\x1b${plain}` : plain;
}

/** `C-`, `M-` and `S-` in any order, or a caret for Ctrl. */
function readModifiers(text: string): Modifiers & { readonly rest: string } {
  const [, caret = "", letters = "", rest = ""] = /^(\^(?=.))?((?:[CcMmSs]-)*)(.*)$/s.exec(text) ?? [];
  const has = (letter: string): boolean => letters.toLowerCase().includes(letter);
  return { rest, ctrl: caret !== "" || has("c"), meta: has("m"), shift: has("s") };
}

function characterKey(character: string, { ctrl, meta, shift }: Modifiers): string | undefined {
  if (shift || (ctrl && "`{|}~".includes(character))) return undefined;
  const pressed = ctrl ? controlCharacter(character) : character;
  return meta ? `\x1b${pressed}` : pressed;
}

function controlCharacter(character: string): string {
  if (/^[a-z]$/i.test(character)) return String.fromCharCode(character.toLowerCase().charCodeAt(0) - 96);
  return character.charCodeAt(0) > 127 ? character : (CONTROL[character] ?? "");
}
