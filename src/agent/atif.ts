// An episode as ATIF: what it was told, what it answered, what came of it, with the tokens and log-probs of each
// answer. A handover is a system step that refers to its calls, each a trajectory of its own.
import type { EndReason } from "../failure/end-reason.ts";
import type { Chunk } from "../trajectory/chunk.ts";
import { type AtifStep, AtifTrajectory } from "./atif-schema.ts";
import { parseCalls } from "./bash-tool/parse-calls.ts";
import { findProtocol, type ProtocolName } from "./find-protocol.ts";
import { withoutReasoning } from "./reasoning.ts";
import { jsonFormat, type ReplyFormat, xmlFormat } from "./terminus/reply-format.ts";
import type { TranscriptTurn } from "./transcript.ts";

export interface AtifInput {
  readonly sessionId: string;
  /** Version of t1. */
  readonly version: string;
  readonly protocol: ProtocolName;
  readonly modelName: string;
  readonly transcript: readonly TranscriptTurn[];
  /** All of the episode, in the order of its answers. */
  readonly chunks: readonly Chunk[];
  readonly endReason: EndReason;
}

type Unnumbered = Omit<AtifStep, "step_id">;

/** @returns undefined when nothing was sampled: ATIF has no empty trajectory */
export function toAtif(input: AtifInput): AtifTrajectory | undefined {
  const { sessionId, version, protocol, modelName, transcript, chunks, endReason } = input;
  if (transcript.length === 0) return undefined;
  const turns = chunks.flatMap(chunk => chunk.turns.map(turn => ({ chunk, ...turn })));
  const agent = { name: "t1", version, model_name: modelName, extra: { protocol } };
  const steps: Unnumbered[] = [];
  const calls: AtifTrajectory[] = [];
  let handover: Unnumbered | undefined;
  transcript.forEach((record, index) => {
    const metrics = metricsOf(turns[index]);
    if (record.purpose === undefined) {
      handover = undefined;
      if (record.prompt !== undefined) steps.push({ source: "user", message: record.prompt });
      steps.push(turnStep(record, protocol, metrics));
      return;
    }
    handover ??= pushed(steps, handoverStep());
    const id = `${sessionId}-call-${calls.length + 1}-${record.purpose}`;
    handover.observation?.results[0]?.subagent_trajectory_ref?.push({
      trajectory_id: id,
      session_id: sessionId,
      extra: { call: record.purpose },
    });
    const asked: Unnumbered[] = [
      { source: "user", message: record.prompt ?? "" },
      { source: "agent", message: record.answer, metrics, llm_call_count: 1 },
    ];
    calls.push({
      schema_version: "ATIF-v1.8",
      session_id: sessionId,
      trajectory_id: id,
      agent,
      steps: numbered(asked),
    });
  });
  const { tools } = findProtocol({ protocol });
  return AtifTrajectory.parse({
    schema_version: "ATIF-v1.8",
    session_id: sessionId,
    agent: { ...agent, ...(tools !== undefined && { tool_definitions: tools }) },
    steps: numbered(steps),
    final_metrics: {
      total_prompt_tokens: turns.reduce((sum, { start }) => sum + start, 0),
      total_completion_tokens: turns.reduce((sum, { start, end }) => sum + end - start, 0),
      total_steps: steps.length,
      extra: { end_reason: endReason },
    },
    ...(calls.length > 0 && { subagent_trajectories: calls }),
  });
}

function numbered(steps: readonly Unnumbered[]): AtifStep[] {
  return steps.map((step, index) => ({ step_id: index + 1, ...step }));
}

function pushed<T>(list: T[], item: T): T {
  list.push(item);
  return item;
}

function metricsOf({ chunk, start, end, policyVersion }: RecordedTurn): NonNullable<AtifStep["metrics"]> {
  return {
    prompt_tokens: start,
    completion_tokens: end - start,
    prompt_token_ids: [...chunk.tokens.subarray(0, start)],
    completion_token_ids: [...chunk.tokens.subarray(start, end)],
    logprobs: [...chunk.logProbs.subarray(start, end)],
    extra: { policy_version: policyVersion },
  };
}

interface RecordedTurn {
  readonly chunk: Chunk;
  readonly start: number;
  readonly end: number;
  readonly policyVersion: number;
}

/** In the words of Harbor's own exports, whose readers look for them. */
function handoverStep(): Unnumbered {
  return {
    source: "system",
    message: "Performed context summarization and handoff to continue task.",
    observation: { results: [{ subagent_trajectory_ref: [] }] },
    extra: { context_management: { type: "compaction", boundary: "replace" } },
  };
}

function turnStep(
  { turn, answer, command, observation }: TranscriptTurn,
  protocol: ProtocolName,
  metrics: NonNullable<AtifStep["metrics"]>,
): Unnumbered {
  const reply = withoutReasoning(answer);
  const reasoning = answer.slice(0, answer.length - reply.length);
  const { message = reply, calls } = actionsOf(reply, command, turn, protocol);
  // One output for several commands belongs to none of them.
  const source = calls.filter(call => call.function_name !== DONE_CALL);
  return {
    source: "agent",
    message,
    ...(reasoning !== "" && { reasoning_content: reasoning.replace(/^\s*<think>|<\/think>$/g, "").trim() }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(observation !== undefined && {
      observation: {
        results: [
          {
            ...(source.length === 1 && { source_call_id: source[0].tool_call_id }),
            content: observation,
          },
        ],
      },
    }),
    metrics,
    llm_call_count: 1,
  };
}

const DONE_CALL = "mark_task_complete";

interface Actions {
  /** Left out where it is the reply itself. */
  readonly message?: string;
  readonly calls: NonNullable<AtifStep["tool_calls"]>;
}

function actionsOf(
  reply: string,
  command: string | undefined,
  turn: number,
  protocol: ProtocolName,
): Actions {
  switch (protocol) {
    case "terminus-json":
      return terminusActions(reply, turn, jsonFormat);
    case "terminus-xml":
      return terminusActions(reply, turn, xmlFormat);
    case "bash-tool": {
      const parsed = parseCalls(reply);
      const commands = parsed.kind === "commands" ? parsed.commands : [];
      return { calls: commands.map((text, index) => callOf(turn, index, "bash", { command: text })) };
    }
    case "compact":
      return { calls: command === undefined ? [] : [callOf(turn, 0, "shell", { command })] };
    default:
      return protocol satisfies never;
  }
}

function terminusActions(reply: string, turn: number, { parse }: ReplyFormat): Actions {
  const { commands, isComplete, error, analysis, plan } = parse(reply);
  if (error !== undefined) return { calls: [] };
  const said = [analysis && `Analysis: ${analysis}`, plan && `Plan: ${plan}`].filter(Boolean);
  const calls = commands.map(({ keys, durationSec }, index) =>
    callOf(turn, index, "bash_command", { keystrokes: keys, duration: durationSec }),
  );
  const done = { tool_call_id: `call_${turn}_task_complete`, function_name: DONE_CALL, arguments: {} };
  return { message: said.join("\n"), calls: isComplete ? [...calls, done] : calls };
}

function callOf(turn: number, index: number, name: string, given: Record<string, unknown>) {
  return { tool_call_id: `call_${turn}_${index + 1}`, function_name: name, arguments: given };
}
