import { Terminal } from "@xterm/headless";
import { expect, test } from "vitest";
import { deriveSeed } from "../random/seed.ts";
import { RandomStream } from "../random/stream.ts";
import { QuestionFilter } from "./terminal-questions.ts";

const QUESTIONS = [
  "\x1b[6n",
  "\x1b[5n",
  "\x1b[?6n",
  "\x1b[?15n",
  "\x1b[c",
  "\x1b[0c",
  "\x1b[>c",
  "\x1b[=c",
  "\x1b[?2004$p",
  "\x1b[4$p",
  "\x1b[14t",
  "\x1b[18t",
  "\x1b[21t",
  "\x1b[>q",
  "\x1b[x",
  "\x1b[?u",
  "\x1bZ",
  "\x05",
  "\x1b]11;?\x07",
  "\x1b]10;?;?\x1b\\",
  "\x1b]4;1;?\x07",
  "\x1b]52;c;?\x07",
  "\x1b]11;?\xc2\x9c",
  "\xc2\x9b6n",
  "\xc2\x9d11;?\x07",
  "\x1bP$qm\x1b\\",
  "\x1bP+q544e\x1b\\",
  "\x1b_Gi=1,a=q;AAAA\x1b\\",
  // A control character within is no way around, nor is the sequence that cuts a question off.
  "\x1b[\r6n",
  "\x1b]11;?\x1b[m",
];

const OTHERS = [
  "plain text, ä and 日本\r\n",
  "\x1b[1;31mred\x1b[0m",
  "\x1b[2J\x1b[H\x1b[?25l\x1b[?1049h\x1b[?2004h",
  "\x1b[22;0;0t\x1b[8;30;90t",
  "\x1b[3 q\x1b[>4;2m\x1b[>1u\x1b[?1c",
  "\x1b]0;a title? yes;?\x07",
  "\x1b]8;;http://a.b/?c=?\x1b\\link\x1b]8;;\x1b\\",
  "\x1b]11;#002b36\x07",
  "\x1b]52;c;aGk=\x07",
  "\x1bP0;1q#0;2;0;0;0~~\x1b\\",
  "\x1b(B\x1b7\x1b8\x1b=\x1b#8",
];

const bytes = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

/** By one byte after the other, as a slow program may print it. */
function slowly(text: string): string {
  const filter = new QuestionFilter();
  return [...text].map(byte => filter.pass(byte)).join("");
}

test.each(QUESTIONS)("%j is not asked", question => {
  for (const passed of [new QuestionFilter().pass(`a${question}b`), slowly(`a${question}b`)]) {
    // What ended a question may be left: it shows nothing.
    const rest = ["\x1b\\", "\x1b[m", "\r"].reduce((text, end) => text.replace(end, ""), passed);
    expect(rest).toBe("ab");
  }
});

test.each(OTHERS.map(bytes))("%j is shown as it is", text => {
  expect(new QuestionFilter().pass(text)).toBe(text);
  expect(slowly(text)).toBe(text);
});

test("a terminal behind it answers nothing, whatever is printed", async () => {
  const screen = new Terminal({ allowProposedApi: true });
  const answers: string[] = [];
  screen.onData(answer => answers.push(answer));
  const show = (text: string) => new Promise<void>(resolve => screen.write(text, resolve));
  await show("\x1b[6n");
  expect(answers).toHaveLength(1); // it would
  const random = new RandomStream(deriveSeed("terminal questions"));
  const pieces = [
    ...QUESTIONS,
    ...OTHERS,
    "\x1b",
    "[",
    "]",
    "6n",
    ";?",
    "\x07",
    "c",
    "\x18",
    "\r",
    "P",
    "\\",
    "?",
  ];
  const filter = new QuestionFilter();
  // In order, and all before the last one is shown.
  for (let count = 0; count < 3_000; count++)
    screen.write(filter.pass(pieces[random.integer(pieces.length)] ?? ""));
  await show("");
  expect(answers).toHaveLength(1);
});
