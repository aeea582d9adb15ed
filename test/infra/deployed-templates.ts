// The templates of a deployment without settings, and how tests read them. A local run reads the same templates:
// synthesized once for this version of the sources, since loading CDK takes longer than most of what is tested on them.
// Functions are not bundled there: bundles.test.ts does that.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { synthesizedAssembly } from "../../src/local/synthesized-assembly.ts";

/** JSON whose parts tests name: one that is not there fails the test that looks for it. */
// biome-ignore lint/suspicious/noExplicitAny: an expectation is the check of what stands there
export type UncheckedJson = any;

export interface SynthesizedTemplate {
  readonly Resources: Readonly<
    Record<string, { readonly Type: string; readonly Properties?: UncheckedJson }>
  >;
  readonly Outputs?: Readonly<Record<string, { readonly Value: UncheckedJson }>>;
}

/** Templates by the part's name: storage, network, … */
export type Templates = Readonly<Record<string, SynthesizedTemplate>>;

export async function deployedTemplates(): Promise<Templates> {
  const folder = await synthesizedAssembly();
  const files = readdirSync(folder).filter(name => name.endsWith(".template.json"));
  return Object.fromEntries(
    files.map(name => [
      name.replace(/^t1-(.*)\.template\.json$/, "$1"),
      JSON.parse(readFileSync(join(folder, name), "utf8")) as SynthesizedTemplate,
    ]),
  );
}

/** A state machine's definition as plain JSON; values that only a deployment knows stand as `<LogicalId>`. */
export function definitionsOf(templates: Templates): Record<string, UncheckedJson> {
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
export function containerOf(templates: Templates, stack: string, name: string): UncheckedJson {
  for (const { Properties } of Object.values(templates[stack].Resources)) {
    const found = Properties?.ContainerDefinitions?.find((one: { Name: string }) => one.Name === name);
    if (found !== undefined) return found;
    if (name === "trainer" && Properties?.ContainerProperties !== undefined)
      return Properties.ContainerProperties;
  }
  throw new Error(`no container ${name} in ${stack}`);
}

/** Environment of a container from its definition. */
export function environmentOf(templates: Templates, stack: string, name: string): Record<string, string> {
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
