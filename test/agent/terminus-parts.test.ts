// Keys, output and limits of the Terminus-2 protocol, each beside what tmux and Harbor do.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { limitOutput } from "../../src/agent/terminus/limit-output.ts";
import { OutputReader } from "../../src/agent/terminus/new-output.ts";
import { keyboardInput } from "../../src/agent/terminus/tmux-keys.ts";

describe("keystrokes", () => {
  const { keys } = z
    .strictObject({ source: z.string(), keys: z.record(z.string(), z.string()) })
    .parse(JSON.parse(readFileSync(new URL("fixtures/tmux-keys.json", import.meta.url), "utf8")));

  it.each(Object.entries(keys))("%j are sent as tmux sends them: %s", (text, hex) => {
    // This is no key's name: tmux would cut a trailing semicolon off as the end of its own command, which nobody means.
    if (text.endsWith(";")) expect(keyboardInput(text, false)).toBe(`\x1b;`.slice(text === "M-;" ? 0 : 2));
    else expect(Buffer.from(keyboardInput(text, false)).toString("hex")).toBe(hex);
  });

  it("follow what the program asked of cursor keys; Home and End are xterm's", () => {
    expect(keyboardInput("Up", true)).toBe("\x1bOA");
    expect(keyboardInput("C-Up", true)).toBe("\x1b[1;5A");
    expect([keyboardInput("Home", false), keyboardInput("End", true)]).toEqual(["\x1b[H", "\x1bOF"]);
  });

  it("are typed as they are unless the whole of them is a key's name", () => {
    const text = fc.string({ unit: "binary", minLength: 20, maxLength: 60 });
    fc.assert(fc.property(text, typed => keyboardInput(typed, false) === typed));
    for (const typed of ["C-c\n", "Enter\n", "Up Up", "echo C-c", "Esc", "", "--", "x-y"])
      expect(keyboardInput(typed, false)).toBe(typed);
  });
});

describe("output that is too long", () => {
  it("keeps 5,000 bytes of each end and says how many are missing", () => {
    const text = "a".repeat(6000) + "b".repeat(7000);
    expect(limitOutput(text)).toBe(
      `${"a".repeat(5000)}\n[... output limited to 10000 bytes; 3000 interior bytes omitted ...]\n${"b".repeat(5000)}`,
    );
    expect(limitOutput("x".repeat(10_000))).toBe("x".repeat(10_000));
  });

  it("is cut between characters, holds the limit, and counts every byte", () => {
    const text = fc
      .array(fc.constantFrom("a", "é", "日", "😀", "\n"), { maxLength: 80 })
      .map(list => list.join(""));
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 60 }), (given, limit) => {
        const limited = limitOutput(given, limit);
        const size = Buffer.byteLength(given);
        if (size <= limit) {
          expect(limited).toBe(given);
          return;
        }
        const [, head = "", bytes, omitted, tail = ""] =
          /^(.*)\n\[\.\.\. output limited to (\d+) bytes; (\d+) interior bytes omitted \.\.\.\]\n(.*)$/s.exec(
            limited,
          ) ?? [];
        expect(Number(bytes)).toBe(limit);
        expect(given.startsWith(head) && given.endsWith(tail)).toBe(true);
        expect(Buffer.byteLength(head) + Buffer.byteLength(tail) + Number(omitted)).toBe(size);
        expect(Buffer.byteLength(head) + Buffer.byteLength(tail)).toBeLessThanOrEqual(limit);
        expect(Buffer.from(limited).toString()).toBe(limited);
      }),
    );
  });
});

describe("output since the last look", () => {
  const view = (history: string[], screen: string[]) => ({ history, screen, applicationCursorKeys: false });

  it("is the screen at first, with its blank rows", () => {
    expect(new OutputReader().read(view([], ["box:/app#", "", ""]))).toBe(
      "Current Terminal Screen:\nbox:/app#\n\n\n",
    );
  });

  it.each([
    [
      "from the last line on that was seen, which went on",
      view([], ["box# ls", "a", "box#", ""]),
      view([], ["box# ls", "a", "box# pwd", "/app", "box#", ""]),
      "New Terminal Output:\n\nbox# pwd\n/app\nbox#\n\n",
    ],
    [
      "of one line only, that line",
      view([], ["box#", ""]),
      view([], ["box# pwd", "/app", "box#"]),
      "New Terminal Output:\nbox# pwd\n/app\nbox#\n",
    ],
    [
      "with what scrolled out meanwhile",
      view([], ["1", "2", "3"]),
      view(["1", "2", "3", "4"], ["5", "6", "7"]),
      "New Terminal Output:\n\n3\n4\n5\n6\n7\n",
    ],
    [
      "below blank rows at the top",
      view([], ["", "", "a", "b"]),
      view([], ["", "", "a", "b", "c"]),
      "New Terminal Output:\n\nb\nc\n",
    ],
    [
      "the screen, when what was seen is gone",
      view([], ["box# vi", ""]),
      view([], ["text", "~", "~"]),
      "Current Terminal Screen:\ntext\n~\n~\n",
    ],
    [
      "the screen, when the oldest lines are forgotten and the same was printed again",
      view(["box# seq 2", "1"], ["2", "box#"]),
      view(["2", "box# seq 2", "1"], ["2", "box#"]),
      "Current Terminal Screen:\n2\nbox#\n",
    ],
    [
      "everything, when nothing was there before",
      view([], ["", ""]),
      view([], ["hello", ""]),
      "New Terminal Output:\nhello\n\n",
    ],
  ])("is %s", (_, before, after, text) => {
    const reader = new OutputReader();
    reader.read(before);
    expect(reader.read(after)).toBe(text);
  });

  it("is never empty: what was seen before is told again where nothing is new", () => {
    const reader = new OutputReader();
    reader.read(view([], ["a", "box#", ""]));
    expect(reader.read(view([], ["a", "box#", ""]))).toBe("New Terminal Output:\n\nbox#\n\n");
    reader.read(view([], ["", ""]));
    expect(reader.read(view([], ["", ""]))).toBe("Current Terminal Screen:\n\n\n");
  });
});
