import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { capturedText } from "./captured-text.ts";
import { leakingDescriptors } from "./leaking-descriptors.ts";
import { PseudoTerminal } from "./pseudo-terminal.ts";

const SIZE = { columns: 20, rows: 5 };
const PATIENCE = { timeout: 8_000 };
const opened: PseudoTerminal[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map(terminal => terminal[Symbol.asyncDispose]()));
});

/** A script on this machine. `raw` as editors and shells with line editing have it: every byte counts, none is special. */
function open(
  script: string,
  { outputLimitBytes = 1 << 20, historyLines = 1000, sendWaitMs = 5_000 } = {},
): PseudoTerminal {
  const terminal = new PseudoTerminal(
    ["/bin/sh", "-c", script],
    { ...SIZE, outputLimitBytes, historyLines },
    {
      env: { PATH: "/usr/bin:/bin" },
      owner: undefined,
      signal: (pid, signal) => process.kill(pid, signal),
      sendWaitMs,
    },
  );
  opened.push(terminal);
  return terminal;
}

// Bytes in, screen out. Source of each: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html, the section named.
test.each([
  ["plain lines (C0, LF after the line discipline's CR)", "one\\ntwo", ["one", "two"]],
  [
    "a long line wraps at the right margin (DECAWM)",
    "abcdefghijklmnopqrstuvwxyz",
    ["abcdefghijklmnopqrst", "uvwxyz"],
  ],
  ["carriage return writes over (CR)", "loading\\rdone   ", ["done"]],
  ["backspace moves, it does not erase (BS)", "abc\\b\\bX", ["aXc"]],
  ["cursor position (CUP)", "\\033[3;5Hhere", ["", "", "    here"]],
  ["erase in display (ED 2)", "gone\\033[2J\\033[Hnew", ["new"]],
  ["erase in line (EL)", "abcdef\\033[3D\\033[K", ["abc"]],
  ["colours leave no trace (SGR)", "\\033[1;31mred\\033[0m", ["red"]],
  ["the alternate screen goes away again (DECSET 1049)", "before\\033[?1049hediting\\033[?1049l", ["before"]],
  ["lines scroll out at the top", "1\\n2\\n3\\n4\\n5\\n6\\n7", ["3", "4", "5", "6", "7"]],
  ["wide characters take two cells", "日本a", ["日本a"]],
  ["a title is not on the screen (OSC 0)", "\\033]0;title\\007text", ["text"]],
])("shows %s", async (_, printed, expected) => {
  const terminal = open(`printf '${printed}'; sleep 60`);
  const lines = [...expected, ...Array(SIZE.rows).fill("")].slice(0, SIZE.rows);
  await expect.poll(() => terminal.screen(), PATIENCE).toEqual(lines);
});

test("can be looked at while it is disposed of, without a complaint", async () => {
  const said = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => said.mockRestore());
  const terminal = open("sleep 60");
  const seen = terminal.closed.then(() => terminal.view()); // it has not passed through when the screen is disposed of
  await terminal[Symbol.asyncDispose]();
  expect((await seen).screen).toHaveLength(SIZE.rows);
  expect(said).not.toHaveBeenCalled();
});

test("keeps what scrolled out, also while an editor has the screen, and forgets the oldest lines", async () => {
  const terminal = open(
    "seq 1 9; read x; printf '\\033[?1049h\\033[?1h\\033[2J\\033[Hediting'; read x; seq 10 30",
    {
      historyLines: 10,
    },
  );
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("9");
  expect(await terminal.view()).toEqual({
    history: ["1", "2", "3", "4", "5"],
    screen: ["6", "7", "8", "9", ""],
    applicationCursorKeys: false,
  });
  await terminal.send("\n");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("editing");
  const { history, screen, applicationCursorKeys } = await terminal.view();
  expect(history).toEqual(["1", "2", "3", "4", "5", "6"]);
  expect(screen).toEqual(["editing", "", "", "", ""]);
  expect(applicationCursorKeys).toBe(true);
});

test("hands out each byte of output once, as it came", async () => {
  const terminal = open("printf 'a\\033[1mb'; read x; printf '\\377c'; sleep 60");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("ab");
  expect(capturedText(await terminal.readNew())).toBe("a\x1b[1mb");
  await terminal.send("\n");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("c"); // 0xff is no character: it shows as nothing
  expect(Buffer.from((await terminal.readNew()).head)).toEqual(Buffer.from([13, 10, 0xff, 0x63]));
});

test("delivers a burst of keys to a slow reader in full, and nobody else waits meanwhile", async () => {
  const terminal = open("stty raw -echo; echo up; sleep 0.5; head -c 300000 | cksum; sleep 60");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("up");
  let longestStallMs = 0;
  let last = performance.now();
  const watch = setInterval(() => {
    longestStallMs = Math.max(longestStallMs, performance.now() - last);
    last = performance.now();
  }, 5);
  expect(await terminal.send(Buffer.alloc(300_000, "k"))).toBe(300_000);
  clearInterval(watch);
  // head -c 300000 /dev/zero | tr '\\0' k | cksum, GNU coreutils 9.1
  await expect
    .poll(() => terminal.screen(), PATIENCE)
    .toContainEqual(expect.stringMatching(/1487937183 300000/));
  expect(longestStallMs).toBeLessThan(400);
});

test("says how many keys were taken when the program reads none", async () => {
  const terminal = open("stty raw -echo; echo up; sleep 60", { sendWaitMs: 200 });
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("up");
  const sent = await terminal.send(Buffer.alloc(200_000, "k"));
  expect(sent).toBeGreaterThan(0);
  expect(sent).toBeLessThan(200_000);
});

test("keeps bursts apart and in order", async () => {
  const terminal = open("stty raw -echo; echo up; head -c 60000 | uniq -c; sleep 60");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("up");
  const burst = (letter: string) => terminal.send(`${letter}\n`.repeat(10_000));
  expect(await Promise.all([burst("a"), burst("b"), burst("c")])).toEqual([20_000, 20_000, 20_000]);
  const counts = async () =>
    (await terminal.screen()).map(line => line.trim()).filter(line => /^\d+ [abc]$/.test(line));
  await expect.poll(counts, PATIENCE).toEqual(["10000 a", "10000 b", "10000 c"]);
});

test("a program that reads lines gets at most 4,095 bytes of one, as on every Linux terminal", async () => {
  const terminal = open("stty -echo; echo up; head -n 1 | wc -c; sleep 60");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("up");
  await terminal.send(`${"x".repeat(6000)}\n`);
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("4096"); // with the newline
});

test("answers a program that asks for the position of the cursor", async () => {
  const terminal = open("stty raw -echo; printf 'ab\\033[6n'; head -c 6 | od -An -c; sleep 60");
  // DSR 6 is answered by CPR: ESC [ 1 ; 3 R
  await expect
    .poll(async () => (await terminal.screen()).join(" "), PATIENCE)
    .toMatch(/033\s+\[\s+1\s+;\s+3/);
});

test("output is bounded between two reads", async () => {
  const terminal = open("yes abcdefg", { outputLimitBytes: 100 });
  await expect.poll(async () => (await terminal.readNew()).omittedBytes, PATIENCE).toBeGreaterThan(100_000);
});

test("a shell that ignores the hang-up is ended all the same, and its descriptor is let go", async () => {
  const before = leakingDescriptors();
  const terminal = open("trap '' HUP; echo up; while :; do sleep 0.05; done");
  await expect.poll(() => terminal.screen(), PATIENCE).toContain("up");
  expect(leakingDescriptors()).toHaveLength(before.length + 1);
  await terminal[Symbol.asyncDispose]();
  expect(leakingDescriptors()).toEqual(before);
  expect(await terminal.send("x")).toBe(0);
});
