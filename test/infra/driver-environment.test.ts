// State machines and stages agree on the variables about sandboxes; the test reads both sides.
import { expect, it } from "vitest";
import { FARGATE_SETTINGS } from "../../src/stages/jobs.ts";
import { definitionsOf, deployedTemplates, environmentOf, flatten } from "./deployed-templates.ts";

const templates = await deployedTemplates();

/** Names that a machine adds for each shard. */
function added(): Set<string> {
  const text = JSON.stringify(definitionsOf(templates).iteration);
  const [, list = ""] =
    /"ContainerOverrides":\[\{"Name":"driver","Environment":\[(.*?)\]\}\]/.exec(text) ?? [];
  return new Set([...list.matchAll(/"Name":"(\w+)"/g)].map(([, name = ""]) => name));
}

it("machines add for each shard what its definition cannot know, and the market that the driver runs in", () => {
  expect([...added()].sort()).toEqual(["T1_EPISODES", "T1_MARKET", "T1_PHASE", "T1_POLICY_VERSION"]);
});

it("the prepare stage and drivers are told of the same toolkit and the same families", () => {
  const prepare = Object.values(templates.pipeline.Resources).find(
    ({ Type, Properties }) =>
      Type === "AWS::Lambda::Function" && Properties.Environment?.Variables?.T1_TOOLKIT_IMAGE !== undefined,
  );
  const { T1_TOOLKIT_IMAGE, T1_SANDBOX_FAMILIES } = prepare?.Properties.Environment.Variables ?? {};
  const driver = environmentOf(templates, "sandboxes", "driver");
  // Through an export of the images' stack there, and within a join here.
  const repository = (text: string) => /Toolkit|sandboxtoolkit/i.exec(text)?.[0].toLowerCase();
  expect(repository(flatten(T1_TOOLKIT_IMAGE))).toBe(repository(driver.T1_TOOLKIT_IMAGE ?? ""));
  expect(flatten(T1_TOOLKIT_IMAGE)).toBe(driver.T1_TOOLKIT_IMAGE);
  expect(T1_SANDBOX_FAMILIES).toBe(driver.T1_SANDBOX_FAMILIES);
});

it("a variable that is missing is named", () => {
  expect(() => FARGATE_SETTINGS.fromEnvironment({})).toThrow(/T1_CLUSTER.*T1_SANDBOX_SUBNETS/s);
});
