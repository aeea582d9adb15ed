// The deployed definitions handle failing tasks: this test uses our interpreter, test/emulators an emulator's beside it.
import { describe, expect, it } from "vitest";
import { runHere } from "../emulators/our-interpreter.ts";
import { SCENARIOS } from "../emulators/scenarios.ts";
import { definitionsOf, deployedTemplates } from "./deployed-templates.ts";

const machines = definitionsOf(await deployedTemplates());
const ran = (name: string) => {
  const scenario = SCENARIOS[name];
  const definition = JSON.stringify(machines[scenario.machine]).replaceAll("<AWS::Partition>", "aws");
  const { Bucket } = machines.iteration.States.Rollouts.ItemReader.Arguments;
  return runHere(definition, Bucket, name, scenario);
};

describe("a deployed machine", () => {
  it.each(Object.entries(SCENARIOS))("ends as it should: %s", async (name, { ends }) => {
    expect(await ran(name)).toMatchObject(ends);
  });

  it("goes from Spot to on demand, and on with what that made", async () => {
    const { states, maps } = await ran("TrainingHostLost");
    expect(states.slice(-3)).toEqual(["Publish", "EvaluationDue", "Done"]);
    expect(maps).toEqual([{ ended: "SUCCEEDED", succeeded: 3, failed: 0 }]);
    expect((await ran("SpotInterrupted")).maps).toEqual([{ ended: "SUCCEEDED", succeeded: 3, failed: 0 }]);
  });

  it("ends between two stages when its run was stopped", async () => {
    const { states, output } = await ran("StoppedAtClose");
    expect(states.slice(-2)).toEqual(["Close", "Stopped"]);
    expect(output).toEqual({ run: "r", iteration: 0, stopped: true });
  });
});
