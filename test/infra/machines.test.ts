// The deployed definitions under our own rules, and each rule against a planted violation. Row numbers (B01 …) are those
// of the list of faults that real projects had; the name of each says which fault.
import { describe, expect, it } from "vitest";
import { lintDefinition } from "../../infra/lint/definition.ts";
import { STATES } from "../../src/stages/states.ts";
import { definitionsOf, deployedTemplates, type UncheckedJson } from "./deployed-templates.ts";

const machines = definitionsOf(await deployedTemplates());
const rulesBroken = (definition: UncheckedJson): string[] =>
  lintDefinition(definition).map(({ rule }) => rule);

/** The iteration machine with a change. */
function changed(change: (definition: UncheckedJson) => void): UncheckedJson {
  const copy = structuredClone(machines.iteration);
  change(copy);
  return copy;
}

describe("the deployed machines", () => {
  it.each(["run", "iteration", "evaluation"])("%s breaks no rule", name => {
    expect(lintDefinition(machines[name])).toEqual([]);
  });

  it("the iteration goes through the stages in the order of docs/architecture.md", () => {
    const order = [];
    for (let name = machines.iteration.StartAt; name !== undefined; ) {
      order.push(name);
      const state = machines.iteration.States[name];
      name = state.Next ?? state.Default ?? state.Choices?.[0].Next;
      if (order.includes(name)) name = state.Choices?.[0].Next ?? "AnythingToRun";
    }
    const stages = order.filter(name =>
      ["Plan", "Prepare", "Rollouts", "Score", "Close", "Update", "Publish", "Evaluate", "Done"].includes(
        name,
      ),
    );
    expect(stages).toEqual([
      "Plan",
      "Prepare",
      "Rollouts",
      "Score",
      "Close",
      "Update",
      "Publish",
      "Evaluate",
      "Done",
    ]);
  });

  it("a run that is continued takes its settings along", () => {
    const { Input } = machines.run.States.ContinueAsNew.Arguments;
    expect(Object.keys(Input).sort()).toEqual(["budgetUsd", "generation", "overlap", "run", "session"]);
  });

  it("names of executions stay below 80 characters for the longest run", () => {
    const longest = `${"r".repeat(40)}-session9-i000042-eval`;
    expect(longest.length).toBeLessThanOrEqual(80);
  });
});

describe("the list of states", () => {
  const namesIn = (chart: UncheckedJson): string[] =>
    Object.entries<UncheckedJson>(chart.States).flatMap(([name, state]) => [
      name,
      ...[state.ItemProcessor, ...(state.Branches ?? [])].filter(Boolean).flatMap(namesIn),
    ]);

  it("holds every state of the machines, and no other", () => {
    const used = new Set(["run", "iteration", "evaluation"].flatMap(name => namesIn(machines[name])));
    expect([...used].sort()).toEqual(Object.keys(STATES).sort());
  });
});

describe("rules", () => {
  it.each<[string, string, (definition: UncheckedJson) => void]>([
    ["B02, B43: a map without a ResultWriter", "result-writer", d => delete d.States.Rollouts.ResultWriter],
    [
      "B07: vcpus in the overrides of a job",
      "batch-resources",
      d => {
        const [train] = d.States.Update.Branches;
        train.States.TrainOnDemand.Arguments.ContainerOverrides.Vcpus = 4;
      },
    ],
    [
      "B11: a launch type beside capacity providers",
      "capacity-provider",
      d => {
        d.States.Rollouts.ItemProcessor.States.PlayOnSpot.Arguments.LaunchType = "FARGATE";
      },
    ],
    [
      "B19: a wrongly-cased error name",
      "error-names",
      d => {
        d.States.Rollouts.ItemProcessor.States.PlayOnSpot.Retry[0].ErrorEquals = ["Ecs.AmazonECSException"];
      },
    ],
    [
      "B19: a name that this kind of task does not throw",
      "error-names",
      d => {
        d.States.Plan.Retry[0].ErrorEquals = ["Batch.ServerException"];
      },
    ],
    [
      "B38: a token task without heartbeat",
      "heartbeat",
      d => {
        d.States.Plan.Resource += ".waitForTaskToken";
      },
    ],
    [
      "B38: a heartbeat above the time-out",
      "heartbeat",
      d => {
        d.States.Plan.Resource += ".waitForTaskToken";
        d.States.Plan.HeartbeatSeconds = d.States.Plan.TimeoutSeconds;
      },
    ],
    [
      "a heartbeat on a .sync task",
      "heartbeat",
      d => {
        d.States.Evaluate.HeartbeatSeconds = 60;
      },
    ],
    ["a task without a time limit", "timeout", d => delete d.States.Score.TimeoutSeconds],
    [
      "an Express child that waits for a task",
      "standard-children",
      d => {
        d.States.Rollouts.ItemProcessor.ProcessorConfig.ExecutionType = "EXPRESS";
      },
    ],
    [
      "States.ALL before another catcher",
      "catch-all",
      d => {
        d.States.PlanAgain = d.States.Plan;
        d.States.Plan.Catch = [
          { ErrorEquals: ["States.ALL"], Next: "Score" },
          { ErrorEquals: ["States.Timeout"], Next: "Score" },
        ];
      },
    ],
    [
      "a JSONPath field",
      "jsonata",
      d => {
        d.States.Score.ResultPath = "$.score";
      },
    ],
    [
      "an expression that does not parse",
      "expression",
      d => {
        d.States.Score.Arguments.Payload.phase = "{% $plan.phase + %}";
      },
    ],
    [
      "a variable that nobody assigns",
      "variables",
      d => {
        d.States.Score.Arguments.Payload.phase = "{% $planned.phase %}";
      },
    ],
    [
      "a parent's variable in a child execution",
      "variables",
      d => {
        d.States.Rollouts.ItemProcessor.States.PlayOnSpot.Arguments.Tags[0].Value = "{% $run %}";
      },
    ],
    [
      "a variable of an outer scope assigned in a branch",
      "scope",
      d => {
        d.States.Update.Branches[1].States.PlanAhead.Assign = { plan: "{% $states.result %}" };
      },
    ],
    [
      "a state that nothing leads to",
      "reachable",
      d => {
        d.States.Lost = { Type: "Succeed" };
      },
    ],
    [
      "a success that leads into a failure",
      "success-fails",
      d => {
        const [train] = d.States.Update.Branches;
        delete train.States.TrainOnDemand.End;
        train.States.TrainOnDemand.Next = "TrainingRefused";
      },
    ],
    [
      "a successor that is not there",
      "next",
      d => {
        d.States.Score.Next = "Clsoe";
      },
    ],
    [
      "an integration that roles do not know",
      "integration",
      d => {
        d.States.Score.Resource = "arn:aws:states:::sqs:sendMessage";
      },
    ],
    ["an unbounded retry", "retry-bounds", d => delete d.States.Plan.Retry[0].MaxDelaySeconds],
    [
      "two states of one name",
      "unique-names",
      d => {
        d.States.Update.Branches[1].States.Score = d.States.Update.Branches[1].States.NothingAhead;
        d.States.Update.Branches[1].States.RolloutsAhead.Next = "Score";
      },
    ],
  ])("find %s", (_, rule, plant) => {
    expect(rulesBroken(changed(plant))).toContain(rule);
  });
});
