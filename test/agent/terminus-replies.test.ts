// Replies of our own writing beside what Harbor's Terminus-2 makes of them: commands, warnings, errors, next message.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { ParsedReply } from "../../src/agent/terminus/parsed-reply.ts";
import {
  completionQuestion,
  errorMessage,
  jsonFormat,
  outputMessage,
  type ReplyFormat,
  xmlFormat,
} from "../../src/agent/terminus/reply-format.ts";

const Fixture = z.strictObject({
  source: z.string(),
  output: z.string(),
  cases: z.array(
    z.strictObject({
      name: z.string(),
      reply: z.string(),
      commands: z.array(z.tuple([z.string(), z.number()])),
      complete: z.boolean(),
      warnings: z.array(z.string()),
      error: z.string().optional(),
      message: z.string(),
    }),
  ),
});

function readFixture(name: string): z.infer<typeof Fixture> {
  return Fixture.parse(JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), "utf8")));
}

function messageFor(
  format: ReplyFormat,
  { error, warnings, isComplete }: ParsedReply,
  output: string,
): string {
  if (error !== undefined) return errorMessage(format, error, warnings);
  return isComplete ? completionQuestion(format, output) : outputMessage(output, warnings);
}

describe.each([
  ["terminus-json", jsonFormat],
  ["terminus-xml", xmlFormat],
] as const)("a %s reply", (name, format) => {
  const { output, cases } = readFixture(name);

  it.each(cases)("is read and answered as Harbor does: $name", expected => {
    const reply = format.parse(expected.reply);
    expect({
      commands: reply.commands.map(({ keys, durationSec }) => [keys, durationSec]),
      complete: reply.isComplete,
      warnings: reply.warnings,
      error: reply.error,
      message: messageFor(format, reply, output),
    }).toEqual({
      commands: expected.commands,
      complete: expected.complete,
      warnings: expected.warnings,
      error: expected.error,
      message: expected.message,
    });
  });

  it("is read without an exception, whatever it is; one with an error runs nothing", () => {
    const pieces = cases.flatMap(({ reply }) => [reply, reply.slice(0, reply.length / 2)]);
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc
        .array(fc.constantFrom(...pieces, '"', "{", "}", "[", "\\", "<", ">", "/", "</commands>", "\ud800"), {
          maxLength: 6,
        })
        .map(parts => parts.join("")),
    );
    fc.assert(
      fc.property(text, given => {
        const { commands, error } = format.parse(given);
        if (error !== undefined) expect(commands).toEqual([]);
        for (const { durationSec } of commands) {
          expect(durationSec).toBeGreaterThanOrEqual(0);
          expect(durationSec).toBeLessThanOrEqual(60);
        }
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ["nested lists", "[".repeat(50_000)],
    ["nested objects", '{"a":'.repeat(50_000)],
    ["open tags", `<response><commands>${"<keystrokes>".repeat(20_000)}`],
    ["braces", "{".repeat(50_000) + "{}".repeat(50_000)],
    ["escapes", `{"analysis": "${"\\".repeat(99_999)}`],
  ])("of many %s is read at once", (_, reply) => {
    const startedAt = performance.now();
    expect(format.parse(reply).error).toBeDefined();
    expect(performance.now() - startedAt).toBeLessThan(3000);
  });
});

describe("an empty command among others", () => {
  it("only waits, in both formats: no warning about its newline (harbor#2308; Harbor's XML still gives one)", () => {
    const xml =
      '<response><analysis>a</analysis><plan>p</plan><commands><keystrokes duration="5"></keystrokes><keystrokes duration="1">ls\n</keystrokes></commands></response>';
    const json =
      '{"analysis":"a","plan":"p","commands":[{"keystrokes":"","duration":5},{"keystrokes":"ls\\n","duration":1}]}';
    expect(xmlFormat.parse(xml).warnings).toEqual([]);
    expect(jsonFormat.parse(json).warnings).toEqual([]);
  });
});
