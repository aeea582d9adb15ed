// The state machine of a run with any algorithm. It starts one iteration after another, each as an execution of its own,
// so that this history grows by few events. It reads from the store what to do next each time: to go on after a stop, a
// failure or an upgrade, start it again.
import { type Definition, inOrder } from "./asl.ts";
import type { Parts } from "./parts.ts";
import { execution, fail, handOver, stage } from "./tasks.ts";

/**
 * Input: `{ run }`, and where wanted
 * - `from: { run, version?, critic?: { run, version? } }`: the run starts from a checkpoint of another run, with that
 *   run's settings and with the critic of a warm-up;
 * - `overlap`: one-step asynchrony;
 * - `budgetUsd`: the run begins no iteration once it has spent this much;
 * - `session`, `generation`: part of the names of executions. A resumed run takes a new session.
 */
export function runMachine(parts: Parts): Definition {
  const name = (rest: string): string => `{% $run & '-' & $session & ${rest} %}`;
  return {
    QueryLanguage: "JSONata",
    Comment: "a run: iterations until it is done, stopped or out of budget",
    TimeoutSeconds: parts.limits.runSeconds,
    ...inOrder({
      Init: {
        Type: "Pass",
        Assign: {
          run: "{% $states.input.run %}",
          session: "{% $exists($states.input.session) ? $states.input.session : 's1' %}",
          generation: "{% $exists($states.input.generation) ? $states.input.generation : 0 %}",
          overlap: "{% $exists($states.input.overlap) ? $states.input.overlap : false %}",
          budgetUsd: "{% $exists($states.input.budgetUsd) ? $states.input.budgetUsd : null %}",
          iterationsHere: 0,
        },
      },
      Preflight: stage(parts, "preflight", {
        run: "{% $run %}",
        from: "{% $exists($states.input.from) ? $states.input.from : null %}",
        overlap: "{% $overlap %}",
        execution: "{% $states.context.Execution.Name %}",
      }),
      NextStep: stage(
        parts,
        "next-step",
        { run: "{% $run %}", budgetUsd: "{% $budgetUsd %}" },
        { Assign: { step: "{% $states.result.Payload %}" } },
      ),
      WhichStep: {
        Type: "Choice",
        Choices: [
          { Condition: "{% $step.next = 'done' %}", Next: "Done" },
          { Condition: "{% $step.next = 'stopped' %}", Next: "Stopped" },
          { Condition: "{% $step.next = 'budget-spent' %}", Next: "BudgetSpent" },
          {
            Condition: `{% $iterationsHere >= ${parts.limits.iterationsPerExecution} %}`,
            Next: "ContinueAsNew",
          },
          { Condition: "{% $step.next = 'evaluate' %}", Next: "EvaluateFirst" },
        ],
      },
      Iterate: {
        ...execution(
          parts,
          parts.machines.iterationArn,
          name("'-i' & $formatNumber($step.iteration, '000000')"),
          {
            run: "{% $run %}",
            iteration: "{% $step.iteration %}",
            overlap: "{% $overlap %}",
            last: "{% $step.last %}",
          },
          parts.limits.iterationSeconds,
        ),
        Assign: { iterationsHere: "{% $iterationsHere + 1 %}" },
        Next: "NextStep",
      },
      EvaluateFirst: {
        Comment: "The version at hand: the untrained one, or one whose runner ended after publishing it",
        ...execution(
          parts,
          parts.machines.evaluationArn,
          name("'-e' & $formatNumber($step.iteration, '000000')"),
          { run: "{% $run %}", evaluation: "{% $step.evaluation %}", version: "{% $step.iteration %}" },
          parts.limits.evaluationSeconds,
        ),
        Assign: { iterationsHere: "{% $iterationsHere + 1 %}" },
        Next: "NextStep",
      },
      ContinueAsNew: {
        ...handOver(
          parts,
          parts.machines.runArn,
          name("'-g' & $string($generation + 1)"),
          {
            run: "{% $run %}",
            session: "{% $session %}",
            generation: "{% $generation + 1 %}",
            overlap: "{% $overlap %}",
            budgetUsd: "{% $budgetUsd %}",
          },
          {
            // Step Functions refuses a name that the same step used before: the execution started then goes on.
            Catch: [{ ErrorEquals: ["StepFunctions.ExecutionAlreadyExistsException"], Next: "HandedOver" }],
          },
        ),
        Next: "HandedOver",
      },
      HandedOver: {
        Type: "Succeed",
        Output: { run: "{% $run %}", outcome: "handed-over", generation: "{% $generation + 1 %}" },
      },
      Done: {
        Type: "Succeed",
        Output: { run: "{% $run %}", outcome: "done", spentUsd: "{% $step.spentUsd %}" },
      },
      Stopped: {
        Type: "Succeed",
        Output: { run: "{% $run %}", outcome: "stopped", spentUsd: "{% $step.spentUsd %}" },
      },
      BudgetSpent: fail(
        "BudgetSpent",
        "the run's budget is spent; start it again with a higher budgetUsd to go on",
      ),
    }),
  };
}
