// One iteration, from plan to publish: the page to read first. It is the order of the work for everybody who runs one.
// infra/state-machines makes the state machine of it that a deployment runs on AWS, and a laptop runs that same machine
// with the interpreter in src/asl. What each step does is in the stage of its name: score is src/stages/score.ts.
//
// Steps are told store keys and counts, never data, as JSONata expressions over `$variables`. Each may run again and keeps
// what is there, so an iteration that was cut off anywhere is started again from its beginning.
import type { Expressions, Step } from "./step.ts";

/** Variables: `$run`, `$iteration`, `$overlap` (one-step asynchrony) and `$rollAhead` (whether an iteration follows). */
export const ITERATION: readonly Step[] = [
  ...rollout({ run: "$run", iteration: "$iteration", overlap: "$overlap" }, "plan"),

  // Rewards from the verifiers' reports; what no driver brought to an end is recorded as lost.
  { call: "score", state: "Score", input: { phase: "$plan.phase" } },

  // The list of episodes that count. Everything after it is a function of this list.
  {
    call: "close",
    state: "Close",
    input: { phase: "$plan.phase", policyVersion: "$plan.policyVersion", pool: "$plan.pool" },
    mayStop: true,
  },

  // Train on the list. With overlap, the old policy plays the next iteration's episodes meanwhile.
  {
    together: "Update",
    train: { run: "$run", iteration: "$iteration" },
    meanwhile: {
      state: "Overlap",
      when: "$rollAhead",
      steps: rollout({ run: "$run", iteration: "$iteration + 1", overlap: "$overlap" }, "ahead"),
    },
  },

  // The trained version becomes the run's newest policy.
  {
    call: "publish",
    state: "Publish",
    input: { run: "$run", iteration: "$iteration", training: "$states.input" },
    keep: "published",
    mayStop: true,
  },

  {
    evaluate: "Evaluate",
    state: "EvaluationDue",
    when: "$published.evaluationDue",
    input: { run: "$run", evaluation: "$published.evaluation", version: "$published.version" },
  },
];

/** Variables: `$run`, `$evaluation`, `$version`, and `$pool`, null for the run's own pool for evaluations. */
export const EVALUATION: readonly Step[] = [
  ...rollout({ run: "$run", evaluation: "$evaluation", version: "$version", pool: "$pool" }, "plan"),
  { call: "score", state: "Score", input: { phase: "$plan.phase" } },
  { call: "close", state: "Close", input: { phase: "$plan.phase", policyVersion: "$plan.policyVersion" } },
  { call: "summarise", state: "Summarise", input: { run: "$run", evaluation: "$evaluation" }, returns: true },
];

/** @param plan variable that keeps what was planned */
function rollout(phase: Expressions, plan: string): readonly Step[] {
  return [
    // Which episodes: tasks of the pool, a seed each. Of a rollout that was cut off only what is missing.
    { call: "plan", state: "Plan", input: phase, keep: plan },

    // Images take minutes to build, so ask again until all are there.
    {
      call: "prepare",
      state: "Prepare",
      input: { phase: `$${plan}.phase` },
      returns: true,
      until: { state: "ImagesReady", ready: "$states.input.ready", wait: "WaitForImages", seconds: 30 },
    },

    // A driver per shard plays its episodes (src/rollout/play-shard.ts), and in each an agent acts (src/agent/episode.ts).
    { forEachShard: "Rollouts", state: "AnythingToRun", plan },
  ];
}
