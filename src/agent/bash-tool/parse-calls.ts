// Tool calls as Qwen3 writes them: <tool_call>{"name": …, "arguments": {…}}</tool_call>, any number of them among text.
// No text makes it throw.
import { z } from "zod";

export type ParsedCalls =
  | { readonly kind: "commands"; readonly commands: readonly string[] }
  /** An answer without a call: the policy has finished. */
  | { readonly kind: "none" }
  /** The error that the policy reads; nothing is run. */
  | { readonly kind: "error"; readonly message: string };

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

const BashArguments = z.object({ command: z.string() });
const Call = z.object({ name: z.string(), arguments: z.unknown() });

/** @param text an answer without its reasoning */
export function parseCalls(text: string): ParsedCalls {
  const bodies = findBodies(text);
  if (bodies.length === 0) {
    if (text.trim() !== "") return { kind: "none" };
    return problem("The answer was empty", "Call bash, or say in words that the task is done.");
  }
  const commands: string[] = [];
  for (const [index, body] of bodies.entries()) {
    const command = readCall(body);
    const name = bodies.length === 1 ? "The tool call" : `Tool call ${index + 1}`;
    if ("problem" in command) return problem(`${name} ${command.problem}`, FORM);
    commands.push(command.text);
  }
  return { kind: "commands", commands };
}

const FORM = `Write ${OPEN}{"name": "bash", "arguments": {"command": "…"}}${CLOSE} with valid JSON inside.`;

function problem(what: string, help: string): ParsedCalls {
  return { kind: "error", message: `${what}. Nothing was run. ${help}` };
}

/** A call that was not closed goes on to the end of the answer. */
function findBodies(text: string): string[] {
  return text
    .split(OPEN)
    .slice(1)
    .map(rest => (rest.includes(CLOSE) ? rest.slice(0, rest.indexOf(CLOSE)) : rest));
}

function readCall(body: string): { readonly text: string } | { readonly problem: string } {
  const call = Call.safeParse(parseJson(body));
  if (!call.success) return { problem: "is not a JSON object with name and arguments" };
  if (call.data.name !== "bash")
    return { problem: `names ${JSON.stringify(call.data.name)}; the only tool is bash` };
  // Some models write the arguments as a string that holds JSON.
  const given = call.data.arguments;
  const parsed = BashArguments.safeParse(typeof given === "string" ? parseJson(given) : given);
  if (!parsed.success) return { problem: "has no argument command that is a string" };
  if (parsed.data.command.includes("\0")) return { problem: "has a NUL character in its command" };
  return { text: parsed.data.command };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
