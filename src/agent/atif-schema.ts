// ATIF, the Agent Trajectory Interchange Format, version 1.8: the shape that Harbor reads and writes. Nothing that is
// not named here may stand in a document. Source: Harbor 0.26, models/trajectories.
import { z } from "zod";

const Extra = z.record(z.string(), z.unknown());
const Count = z.int();

const Media = z.strictObject({
  media_type: z.string(),
  path: z.string(),
  duration_sec: z.number().nonnegative().optional(),
});
const ContentPart = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string() }),
  z.strictObject({ type: z.literal("image"), source: Media }),
  z.strictObject({ type: z.literal("audio"), source: Media }),
]);
const Content = z.union([z.string(), z.array(ContentPart)]);

const Metrics = z.strictObject({
  prompt_tokens: Count.optional(),
  completion_tokens: Count.optional(),
  cached_tokens: Count.optional(),
  cost_usd: z.number().optional(),
  prompt_token_ids: z.array(z.int()).optional(),
  completion_token_ids: z.array(z.int()).optional(),
  logprobs: z.array(z.number()).optional(),
  extra: Extra.optional(),
});

const SubagentReference = z
  .strictObject({
    trajectory_id: z.string().optional(),
    session_id: z.string().optional(),
    trajectory_path: z.string().optional(),
    extra: Extra.optional(),
  })
  .refine(({ trajectory_id: id, trajectory_path: path }) => id !== undefined || path !== undefined, {
    message: "a reference needs trajectory_id or trajectory_path",
  });

const ToolCall = z.strictObject({
  tool_call_id: z.string(),
  function_name: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  extra: Extra.optional(),
});

const ObservationResult = z.strictObject({
  source_call_id: z.string().optional(),
  content: Content.optional(),
  subagent_trajectory_ref: z.array(SubagentReference).optional(),
  extra: Extra.optional(),
});

const AGENT_ONLY = ["model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"] as const;

const Step = z
  .strictObject({
    step_id: z.int().min(1),
    timestamp: z.union([z.iso.datetime({ offset: true, local: true }), z.iso.date()]).optional(),
    source: z.enum(["system", "user", "agent"]),
    model_name: z.string().optional(),
    reasoning_effort: z.union([z.string(), z.number()]).optional(),
    message: Content,
    reasoning_content: z.string().optional(),
    tool_calls: z.array(ToolCall).optional(),
    observation: z.strictObject({ results: z.array(ObservationResult) }).optional(),
    metrics: Metrics.optional(),
    is_copied_context: z.boolean().optional(),
    llm_call_count: z.int().nonnegative().optional(),
    extra: Extra.optional(),
  })
  .check(({ value: step, issues }) => {
    const problem = (message: string, path: string): void => {
      issues.push({ code: "custom", message, path: [path], input: step });
    };
    for (const field of AGENT_ONLY) {
      if (step.source !== "agent" && step[field] !== undefined)
        problem("only a step of the agent has this", field);
    }
    if (step.source === "agent" && step.llm_call_count === 0) {
      for (const field of ["metrics", "reasoning_content"] as const)
        if (step[field] !== undefined) problem("a step without a call of the model has no such thing", field);
    }
    const calls = new Set(step.tool_calls?.map(call => call.tool_call_id));
    for (const { source_call_id: id } of step.observation?.results ?? [])
      if (id !== undefined && !calls.has(id)) problem(`no tool call ${id} in this step`, "observation");
  });

const trajectoryShape = {
  schema_version: z.enum(Array.from({ length: 9 }, (_, minor) => `ATIF-v1.${minor}`)),
  session_id: z.string().optional(),
  trajectory_id: z.string().optional(),
  agent: z.strictObject({
    name: z.string(),
    version: z.string(),
    model_name: z.string().optional(),
    tool_definitions: z.array(Extra).optional(),
    extra: Extra.optional(),
  }),
  steps: z.array(Step).min(1),
  notes: z.string().optional(),
  final_metrics: z
    .strictObject({
      total_prompt_tokens: Count.optional(),
      total_completion_tokens: Count.optional(),
      total_cached_tokens: Count.optional(),
      total_cost_usd: z.number().optional(),
      total_steps: z.int().nonnegative().optional(),
      extra: Extra.optional(),
    })
    .optional(),
  continued_trajectory_ref: z.string().optional(),
  extra: Extra.optional(),
};

/** A trajectory inside another one; its id is what the other refers to it by. */
const EmbeddedTrajectory = z
  .strictObject({ ...trajectoryShape, trajectory_id: z.string() })
  .refine(hasStepsInOrder, { message: "step_id has to count from 1", path: ["steps"] });

export const AtifTrajectory = z
  .strictObject({ ...trajectoryShape, subagent_trajectories: z.array(EmbeddedTrajectory).optional() })
  .refine(hasStepsInOrder, { message: "step_id has to count from 1", path: ["steps"] })
  .refine(
    ({ subagent_trajectories: list = [] }) =>
      new Set(list.map(({ trajectory_id: id }) => id)).size === list.length,
    { message: "trajectory_id has to be unique", path: ["subagent_trajectories"] },
  );
export type AtifTrajectory = z.infer<typeof AtifTrajectory>;
export type AtifStep = z.infer<typeof Step>;

function hasStepsInOrder({ steps }: { readonly steps: readonly { readonly step_id: number }[] }): boolean {
  return steps.every(({ step_id: id }, index) => id === index + 1);
}
