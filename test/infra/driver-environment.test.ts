// What the deployment and the state machines tell a driver is what its program reads: no more, no less.
import { afterEach, expect, it, vi } from "vitest";
import { DRIVER_ENVIRONMENT, FARGATE_ENVIRONMENT } from "../../containers/driver/environment.ts";
import { readContainerEnvironment } from "../../containers/environment.ts";
import { definitionsOf, flatten, synthesize } from "./synthesized.ts";

const { templates } = synthesize();
afterEach(() => vi.unstubAllEnvs());

/** Of the task definition. */
function given(): Record<string, string> {
  const driver = Object.values(templates.sandboxes.Resources).find(
    ({ Type, Properties }) => Type === "AWS::ECS::TaskDefinition" && Properties.Family === "t1-driver",
  );
  const list: { Name: string; Value: unknown }[] = driver?.Properties.ContainerDefinitions[0].Environment;
  return Object.fromEntries(list.map(({ Name, Value }) => [Name, flatten(Value)]));
}

/** Names that a machine adds for each group. */
function added(): Set<string> {
  const text = JSON.stringify(definitionsOf(templates).iteration);
  const [, list = ""] =
    /"ContainerOverrides":\[\{"Name":"driver","Environment":\[(.*?)\]\}\]/.exec(text) ?? [];
  return new Set([...list.matchAll(/"Name":"(\w+)"/g)].map(([, name = ""]) => name));
}

const GROUP = { T1_PHASE: "runs/r/iterations/000000/", T1_EPISODES: "0,1", T1_POLICY_VERSION: "0" };

it("a driver reads every variable that it is given, and is given every one that it needs", () => {
  const known = new Set([...Object.keys(DRIVER_ENVIRONMENT), ...Object.keys(FARGATE_ENVIRONMENT)]);
  // Read where the sampler's client is made.
  const others = new Set(["T1_SAMPLER_URL"]);
  const names = [...Object.keys(given()), ...added()];
  expect(names.filter(name => !known.has(name) && !others.has(name))).toEqual([]);
  expect([...added()].sort()).toEqual([...Object.keys(GROUP), "T1_MARKET"].sort());
  for (const [name, value] of Object.entries({ ...given(), ...GROUP, T1_MARKET: "FARGATE_SPOT" }))
    vi.stubEnv(name, value);
  const env = {
    ...readContainerEnvironment(DRIVER_ENVIRONMENT),
    ...readContainerEnvironment(FARGATE_ENVIRONMENT),
  };
  expect(env).toMatchObject({
    ...{ T1_SANDBOXES: "fargate", T1_CLUSTER: "t1", T1_SANDBOX_FAMILIES: "t1-sandbox-" },
    ...{ T1_SANDBOX_MARKET: "spot-first", T1_MARKET: "FARGATE_SPOT" },
  });
  expect(env.T1_SANDBOX_SUBNETS).toHaveLength(1);
  expect(env.T1_SANDBOX_GROUP).toHaveLength(1);
});

it("the prepare stage and drivers are told of the same toolkit and the same families", () => {
  const prepare = Object.values(templates.pipeline.Resources).find(
    ({ Type, Properties }) =>
      Type === "AWS::Lambda::Function" && Properties.Environment?.Variables?.T1_TOOLKIT_IMAGE !== undefined,
  );
  const { T1_TOOLKIT_IMAGE, T1_SANDBOX_FAMILIES } = prepare?.Properties.Environment.Variables ?? {};
  const driver = given();
  // Through an export of the images' stack there, and within a join here.
  const repository = (text: string) => /Toolkit|sandboxtoolkit/i.exec(text)?.[0].toLowerCase();
  expect(repository(flatten(T1_TOOLKIT_IMAGE))).toBe(repository(driver.T1_TOOLKIT_IMAGE ?? ""));
  expect(flatten(T1_TOOLKIT_IMAGE)).toBe(driver.T1_TOOLKIT_IMAGE);
  expect(T1_SANDBOX_FAMILIES).toBe(driver.T1_SANDBOX_FAMILIES);
});

it("a variable that is missing is named", () => {
  for (const name of Object.keys(FARGATE_ENVIRONMENT)) vi.stubEnv(name, undefined);
  expect(() => readContainerEnvironment(FARGATE_ENVIRONMENT)).toThrow(/T1_CLUSTER.*T1_SANDBOX_SUBNETS/s);
});
