// ATIF documents: ours against the format's rules, and Harbor's own against our reading of them.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { toAtif } from "../../src/agent/atif.ts";
import { AtifTrajectory } from "../../src/agent/atif-schema.ts";
import type { ProtocolName } from "../../src/agent/find-protocol.ts";
import { type Play, type Played, Stage } from "./stage.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage[Symbol.asyncDispose]());

function exported(protocol: ProtocolName, { transcript, chunks, endReason }: Played): AtifTrajectory {
  const input = { sessionId: "s", version: "0.1.0", protocol, modelName: "demo version 3" };
  const trajectory = toAtif({ ...input, transcript, chunks, endReason });
  if (trajectory === undefined) throw new Error("nothing was exported");
  return JSON.parse(JSON.stringify(trajectory));
}

function json(keys: string, taskComplete = false): string {
  const commands = keys === "" ? [] : [{ keystrokes: keys, duration: 0.5 }];
  return JSON.stringify({ analysis: "a", plan: "p", commands, task_complete: taskComplete });
}

describe("an episode as ATIF", () => {
  it("has keystrokes as tool calls, and every token with its log-prob", async () => {
    const played = await stage.play(["no", json("echo x\n"), json("", true), json("", true)], {
      protocol: "terminus-json",
    });
    const { schema_version, steps, final_metrics, agent } = exported("terminus-json", played);
    expect([schema_version, agent.name, agent.extra]).toEqual([
      "ATIF-v1.8",
      "t1",
      { protocol: "terminus-json" },
    ]);
    expect(steps.map(({ source }) => source)).toEqual(["user", "agent", "agent", "agent", "agent"]);
    const [prompt, unreadable, command, done] = steps;
    expect(prompt.message).toContain("Task Description:\nDo it.");
    expect(unreadable).toMatchObject({ message: "no", llm_call_count: 1 });
    expect(unreadable.tool_calls).toBeUndefined();
    expect(command).toMatchObject({
      message: "Analysis: a\nPlan: p",
      tool_calls: [
        {
          tool_call_id: "call_1_1",
          function_name: "bash_command",
          arguments: { keystrokes: "echo x\n", duration: 0.5 },
        },
      ],
      observation: { results: [{ source_call_id: "call_1_1" }] },
    });
    expect(done.tool_calls?.[0]).toEqual({
      tool_call_id: "call_2_task_complete",
      function_name: "mark_task_complete",
      arguments: {},
    });
    expect(done.observation?.results[0]?.source_call_id).toBeUndefined();
    const agentSteps = steps.filter(({ source }) => source === "agent");
    agentSteps.forEach(({ metrics }, index) => {
      const { tokens, logProbs } = played.sampler.generations[index];
      expect(metrics?.completion_token_ids).toEqual([...tokens]);
      expect(metrics?.logprobs).toEqual([...logProbs]);
      expect(metrics?.prompt_token_ids).toHaveLength(metrics?.prompt_tokens ?? -1);
    });
    expect(final_metrics).toMatchObject({ total_steps: 5, extra: { end_reason: "completed" } });
  });

  it("has a handover as a system step that refers to its calls", async () => {
    const fill = json("seq 1000 1900\n");
    const play: Play = {
      protocol: "terminus-json",
      limits: { contextTokens: 8500, observationTokens: 2000, answerTokens: 500 },
      summary: { freeTokens: 5000, answerTokens: 200, train: false },
    };
    const answers = ["sum", "ask", "tell"];
    const played = await stage.play([fill, fill, ...answers, json("", true), json("", true)], play);
    const { steps, subagent_trajectories: calls = [] } = exported("terminus-json", played);
    expect(steps.map(({ source }) => source)).toEqual([
      "user",
      "agent",
      "agent",
      "system",
      "user",
      "agent",
      "agent",
    ]);
    expect(steps[3].extra).toEqual({ context_management: { type: "compaction", boundary: "replace" } });
    expect(steps[4].message).toMatch(/^Here are the answers the other agent provided\.\n\ntell\n/);
    const references = steps[3].observation?.results[0]?.subagent_trajectory_ref ?? [];
    expect(references.map(({ trajectory_id: id }) => id)).toEqual(calls.map(({ trajectory_id: id }) => id));
    expect(calls.map(call => call.steps.map(({ message }) => message).at(-1))).toEqual(answers);
    expect(calls.map(call => call.steps[1]?.metrics?.completion_tokens)).toEqual([4, 4, 5]);
  });

  it("has the calls of tools and the commands of compact", async () => {
    const call = '<think>hm</think><tool_call>{"name":"bash","arguments":{"command":"echo x"}}</tool_call>';
    const tools = exported("bash-tool", await stage.play([call, "Done."], { protocol: "bash-tool" }));
    expect(tools.agent.tool_definitions).toHaveLength(1);
    expect(tools.steps[1]).toMatchObject({
      reasoning_content: "hm",
      tool_calls: [{ function_name: "bash", arguments: { command: "echo x" } }],
      observation: { results: [{ source_call_id: "call_0_1", content: "x\n[exit 0]" }] },
    });
    const compact = exported("compact", await stage.play(["echo x", "done"], { protocol: "compact" }));
    expect(compact.steps.slice(1)).toMatchObject([
      { message: "echo x", tool_calls: [{ arguments: { command: "echo x" } }] },
      { message: "done" },
    ]);
  });

  it("is nothing where nothing was sampled", () => {
    const empty = { transcript: [], chunks: [], endReason: "context_limit" } as const;
    const input = { sessionId: "s", version: "0", protocol: "compact", modelName: "m" } as const;
    expect(toAtif({ ...input, ...empty })).toBeUndefined();
  });
});

describe("the rules of ATIF", () => {
  const good = {
    schema_version: "ATIF-v1.8",
    agent: { name: "a", version: "1" },
    steps: [
      { step_id: 1, source: "user", message: "go" },
      {
        step_id: 2,
        source: "agent",
        message: "",
        tool_calls: [{ tool_call_id: "c", function_name: "f", arguments: {} }],
        observation: { results: [{ source_call_id: "c", content: "x" }] },
      },
    ],
  };

  it("take a document that keeps them", () => {
    expect(AtifTrajectory.safeParse(good).success).toBe(true);
  });

  it.each<[string, (document: typeof good & Record<string, unknown>) => unknown]>([
    ["an unknown field", document => ({ ...document, mood: "good" })],
    ["another version", document => ({ ...document, schema_version: "ATIF-v1.9" })],
    ["no steps", document => ({ ...document, steps: [] })],
    ["steps that do not count from 1", ({ steps, ...rest }) => ({ ...rest, steps: steps.slice(1) })],
    [
      "a user with metrics",
      ({ steps, ...rest }) => ({ ...rest, steps: [{ ...steps[0], metrics: {} }, steps[1]] }),
    ],
    [
      "a result of no call",
      ({ steps, ...rest }) => ({ ...rest, steps: [steps[0], { ...steps[1], tool_calls: [] }] }),
    ],
    [
      "metrics of a step without a call of the model",
      ({ steps, ...rest }) => ({
        ...rest,
        steps: [steps[0], { ...steps[1], llm_call_count: 0, metrics: {} }],
      }),
    ],
    [
      "a reference that leads nowhere",
      ({ steps, ...rest }) => ({
        ...rest,
        steps: [
          steps[0],
          {
            ...steps[1],
            observation: { results: [{ subagent_trajectory_ref: [{ session_id: "s" }] }] },
          },
        ],
      }),
    ],
    ["a trajectory inside without an id", document => ({ ...document, subagent_trajectories: [good] })],
    [
      "two trajectories inside of one id",
      document => ({
        ...document,
        subagent_trajectories: [
          { ...good, trajectory_id: "t" },
          { ...good, trajectory_id: "t" },
        ],
      }),
    ],
  ])("refuse %s", (_, change) => {
    expect(AtifTrajectory.safeParse(change(good)).success).toBe(false);
  });

  const folder = process.env.T1_FIXTURES === undefined ? undefined : join(process.env.T1_FIXTURES, "atif");
  const files =
    folder !== undefined && existsSync(folder)
      ? readdirSync(folder).filter(name => /trajectory[^/]*\.json$/.test(name))
      : [];

  const why = files.length === 0 ? " (skipped: T1_FIXTURES holds none)" : "";
  it.skipIf(files.length === 0)(`take Harbor's own documents${why}`, () => {
    for (const name of files) {
      const parsed = AtifTrajectory.safeParse(JSON.parse(readFileSync(join(folder ?? "", name), "utf8")));
      expect(parsed.error?.issues, name).toBeUndefined();
    }
  });
});
