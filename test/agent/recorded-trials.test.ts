// Replies that models wrote in trials of others, through our parsers: the same must come of them as came then. The
// recordings are not ours to copy; T1_FIXTURES names the folder that has them.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { AtifTrajectory } from "../../src/agent/atif-schema.ts";
import { parseCalls } from "../../src/agent/bash-tool/parse-calls.ts";
import { withoutReasoning } from "../../src/agent/reasoning.ts";
import { completionQuestion, errorMessage, jsonFormat } from "../../src/agent/terminus/reply-format.ts";

const root = process.env.T1_FIXTURES ?? "";
const skipped = !existsSync(join(root, "trials"));
const why = skipped ? " (skipped: T1_FIXTURES holds none)" : "";

const Message = z.looseObject({
  role: z.string(),
  content: z.string().nullish(),
  tool_calls: z
    .array(z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .nullish(),
});

describe.skipIf(skipped)(`recorded trials${why}`, () => {
  it("that called bash: each call, written as Qwen3 writes it, is read as the command that ran", () => {
    let callCount = 0;
    for (const trial of readdirSync(join(root, "trials"))) {
      const file = join(root, "trials", trial, "agent/trajectory.json");
      if (!existsSync(file)) continue;
      const messages = z.array(Message).parse(JSON.parse(readFileSync(file, "utf8")));
      for (const { role, content, tool_calls: calls } of messages) {
        if (role !== "assistant" || !calls?.length) continue;
        const blocks = calls.map(
          call =>
            `<tool_call>\n{"name": "${call.function.name}", "arguments": ${call.function.arguments}}\n</tool_call>`,
        );
        const parsed = parseCalls(withoutReasoning(`${content ?? ""}${blocks.join("\n")}`));
        const commands = calls.map(
          call => z.looseObject({ command: z.string() }).parse(JSON.parse(call.function.arguments)).command,
        );
        expect(parsed, trial).toEqual({ kind: "commands", commands });
        callCount += calls.length;
      }
    }
    expect(callCount).toBeGreaterThan(200);
  });

  it("of Terminus-2: replies are read, and answered in the same words", () => {
    const Trace = z.array(
      z.looseObject({ conversations: z.array(z.looseObject({ role: z.string(), content: z.string() })) }),
    );
    let replyCount = 0;
    for (const name of readdirSync(join(root, "atif")).filter(file => file.endsWith(".traces.json"))) {
      const traces = Trace.parse(JSON.parse(readFileSync(join(root, "atif", name), "utf8")));
      for (const { conversations } of traces) {
        conversations.forEach(({ role, content }, index) => {
          const next = conversations[index + 1]?.content;
          if (role !== "assistant" || next === undefined || !content.includes('"commands"')) return;
          const reply = jsonFormat.parse(withoutReasoning(content));
          replyCount++;
          if (reply.error !== undefined)
            expect(next).toBe(errorMessage(jsonFormat, reply.error, reply.warnings));
          else if (reply.isComplete) {
            const output = /^Current terminal state:\n([\s\S]*)\n\nAre you sure/.exec(next)?.[1] ?? "";
            expect(next).toBe(completionQuestion(jsonFormat, output));
          } else expect(next).not.toMatch(/^Previous response had/);
        });
      }
    }
    expect(replyCount).toBeGreaterThan(5);
  });

  it("of Terminus-2: the commands that were run are those that are read from the reply", () => {
    const read = (name: string): AtifTrajectory =>
      AtifTrajectory.parse(JSON.parse(readFileSync(join(root, "atif", name), "utf8")));
    const raw = read("hello-world-context-summarization-linear-history.trajectory.cont-1.json");
    const commands = raw.steps
      .filter(({ source, is_copied_context: copied }) => source === "agent" && copied !== true)
      .map(({ message }) => jsonFormat.parse(typeof message === "string" ? message : "").commands);
    expect(commands).toEqual([
      [{ keys: "printf 'Hello, world!\\n' > hello.txt\n", durationSec: 0.1 }],
      [{ keys: "cat hello.txt\n", durationSec: 0.1 }],
      [],
      [],
    ]);
  });
});
