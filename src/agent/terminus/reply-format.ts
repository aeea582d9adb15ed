// The two formats of the Terminus-2 protocol: how a reply is read, and what the policy is told. The instructions are
// ours; labels, errors, warnings and questions are Harbor's words (0.26, agents/terminus_2), which a policy that was
// trained there knows.
import { parseJsonReply } from "./parse-json.ts";
import { parseXmlReply } from "./parse-xml.ts";
import type { ParsedReply } from "./parsed-reply.ts";

export interface ReplyFormat {
  /** @param text a reply without its reasoning */
  readonly parse: (text: string) => ParsedReply;
  /** Text of the first message before the task. */
  readonly instructions: string;
  /** Name of a reply in messages that ask for one. */
  readonly name: string;
  /** How completion is said. */
  readonly completion: string;
}

const SITUATION = `You work in a terminal on a Linux machine until a task is done. You see what the terminal shows, and each of your replies sends keystrokes to it.
`;

const KEYS = `Keystrokes go to the terminal exactly as they are written. A command runs only when its keystrokes end in a newline. A command whose whole keystrokes are the name of a key in tmux's notation presses that key instead: C-c is Ctrl+C, C-d is Ctrl+D, and there are Enter, Escape, Up, Tab and so on. Such a key has to be a command of its own.
`;

const WAITING = `The duration of a command is how many seconds pass before the next one is sent, and after the last one before you see the terminal. Take 0.1 for what is done at once (cd, ls, cat), 1 for what takes a moment (gcc, find), more for what is slow (make, long scripts), never more than 60. Rather wait too short than too long: when something still runs, send empty keystrokes with a duration and look again.
`;

export const jsonFormat: ReplyFormat = {
  parse: parseJsonReply,
  instructions: `${SITUATION}
Reply with one JSON object of this form:

{
  "analysis": "What the terminal shows: what has worked, what has not, what is still to be done.",
  "plan": "What you do next, and what you expect of each command.",
  "commands": [
    { "keystrokes": "cd project\\n", "duration": 0.1 },
    { "keystrokes": "make\\n", "duration": 20.0 }
  ],
  "task_complete": false
}

"analysis", "plan" and "commands" are required, in this order. "task_complete" says that the task is done and may be left out until then. Of a command "keystrokes" is required; "duration" is 1.0 when it is left out. "commands" may be empty.

${KEYS}
${WAITING}
Write nothing before or after the JSON object, and escape quotes, backslashes and newlines inside its strings.`,
  name: "JSON response",
  completion: 'include "task_complete": true in your JSON response again.',
};

export const xmlFormat: ReplyFormat = {
  parse: parseXmlReply,
  instructions: `${SITUATION}
Reply with one block of this form:

<response>
<analysis>
What the terminal shows: what has worked, what has not, what is still to be done.
</analysis>
<plan>
What you do next, and what you expect of each command.
</plan>
<commands>
<keystrokes duration="0.1">cd project
</keystrokes>
<keystrokes duration="20.0">make
</keystrokes>
</commands>
<task_complete>false</task_complete>
</response>

<analysis>, <plan> and <commands> are required, in this order. <task_complete>true</task_complete> says that the task is done and may be left out until then. The duration of a command is 1.0 when it is left out.

This is not real XML: everything between <keystrokes> and </keystrokes> is taken as it stands, so write <, >, & and quotes directly, never as &lt; and the like, and add no white space that you do not mean.

${KEYS}
${WAITING}
Write nothing before or after the block, and no other tags.`,
  name: "response",
  completion: "include <task_complete>true</task_complete> again.",
};

export function firstMessage({ instructions }: ReplyFormat, instruction: string, state: string): string {
  return `${instructions}\n\nTask Description:\n${instruction}\n\nCurrent terminal state:\n${state}\n`;
}

export function errorMessage({ name }: ReplyFormat, error: string, warnings: readonly string[]): string {
  const feedback = warnings.length === 0 ? "" : `\nWARNINGS: ${list(warnings)}`;
  return `Previous response had parsing errors:\nERROR: ${error}${feedback}\n\nPlease fix these issues and provide a proper ${name}.`;
}

export function outputMessage(output: string, warnings: readonly string[]): string {
  if (warnings.length === 0) return output;
  return `Previous response had warnings:\nWARNINGS: ${list(warnings)}\n\n${output}`;
}

export function completionQuestion({ completion }: ReplyFormat, output: string): string {
  return `Current terminal state:\n${output}\n\nAre you sure you want to mark the task as complete? This will trigger your solution to be graded and you won't be able to make any further corrections. If so, ${completion}`;
}

function list(warnings: readonly string[]): string {
  return `- ${warnings.join("\n- ")}`;
}
