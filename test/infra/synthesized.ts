// The app's templates, made once per test file. Functions are not bundled here: bundles.test.ts does that.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App } from "aws-cdk-lib";
import { afterAll } from "vitest";
import { DeploymentConfig } from "../../infra/config.ts";
import { addStacks } from "../../infra/stacks.ts";

const ROOT = join(import.meta.dirname, "../..");

/** JSON whose parts tests name: one that is not there fails the test that looks for it. */
// biome-ignore lint/suspicious/noExplicitAny: an expectation is the check of what stands there
export type UncheckedJson = any;

interface SynthesizedTemplate {
  readonly Resources: Readonly<
    Record<string, { readonly Type: string; readonly Properties?: UncheckedJson }>
  >;
  readonly Outputs?: Readonly<Record<string, { readonly Value: UncheckedJson }>>;
}

export interface Synthesized {
  readonly app: App;
  readonly config: DeploymentConfig;
  /** By the part's name: storage, network, … */
  readonly templates: Readonly<Record<string, SynthesizedTemplate>>;
}

export function synthesize(settings: unknown = {}): Synthesized {
  const outdir = mkdtempSync(join(tmpdir(), "t1-synth-"));
  afterAll(() => rmSync(outdir, { recursive: true, force: true }));
  const { context } = JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8"));
  const app = new App({ outdir, context: { ...context, "aws:cdk:bundling-stacks": [] } });
  const config = DeploymentConfig.parse(settings);
  addStacks(app, config);
  const { stacks } = app.synth();
  const templates = Object.fromEntries(
    stacks.map(stack => [
      stack.stackName.slice(config.name.length + 1),
      stack.template as SynthesizedTemplate,
    ]),
  );
  return { app, config, templates };
}

/** A machine's definition as plain JSON; what only a deployment knows stands as `<LogicalId>`. */
export function definitionsOf(templates: Synthesized["templates"]): Record<string, UncheckedJson> {
  const machines = Object.values(templates.pipeline.Resources).filter(
    ({ Type }) => Type === "AWS::StepFunctions::StateMachine",
  );
  return Object.fromEntries(
    machines.map(({ Properties }) => [
      Properties.StateMachineName.replace(/^.*-/, ""),
      JSON.parse(flatten(Properties.DefinitionString)),
    ]),
  );
}
/** A container by its name: of a task definition, or of the one job definition. */
export function containerOf(templates: Synthesized["templates"], stack: string, name: string): UncheckedJson {
  for (const { Properties } of Object.values(templates[stack].Resources)) {
    const found = Properties?.ContainerDefinitions?.find((one: { Name: string }) => one.Name === name);
    if (found !== undefined) return found;
    if (name === "trainer" && Properties?.ContainerProperties !== undefined)
      return Properties.ContainerProperties;
  }
  throw new Error(`no container ${name} in ${stack}`);
}

/** What a container is told by its definition. */
export function environmentOf(
  templates: Synthesized["templates"],
  stack: string,
  name: string,
): Record<string, string> {
  const list: { Name: string; Value: unknown }[] = containerOf(templates, stack, name).Environment;
  return Object.fromEntries(list.map(({ Name, Value }) => [Name, flatten(Value)]));
}

/** Intrinsic functions as readable text. */
export function flatten(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return String(value);
  const [[name, argument]] = Object.entries(value);
  switch (name) {
    case "Ref":
      return `<${argument}>`;
    case "Fn::GetAtt":
      return `<${(argument as string[]).join(".")}>`;
    case "Fn::ImportValue":
      return `<${String(argument).replace(/^.*:ExportsOutput(Ref|FnGetAtt)/, "")}>`;
    case "Fn::Join": {
      const [separator, parts] = argument as [string, unknown[]];
      return parts.map(flatten).join(separator);
    }
    default:
      return `<${name}>`;
  }
}
