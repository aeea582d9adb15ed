// Reads a synthesized cloud assembly (`cdk.out`) for a local run: the state machines, with local names for values that
// only a deployment knows, and the programs of their tasks: functions by the folder of their code, containers with their
// environments, jobs with theirs and with their retry strategies.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { z } from "zod";
import { InputError } from "../failure/errors.ts";
import { RetryStrategy } from "./executors/batch-retry.ts";
import { readMachines, type Symbols } from "./synthesized.ts";

export interface Assembly {
  /** Definitions by the machines' names. */
  readonly machines: Readonly<Record<string, string>>;
  /** By the name that `machines` use for the function. */
  readonly functions: Readonly<Record<string, AssemblyFunction>>;
  /** Containers by family of their task definition. */
  readonly tasks: Readonly<Record<string, readonly AssemblyContainer[]>>;
  /** By name of the job definition. */
  readonly jobs: Readonly<Record<string, AssemblyJob>>;
  readonly queues: readonly string[];
  /** The names that `machines` use for the buckets. */
  readonly buckets: readonly string[];
}

/** Leaves out values that are known only once the stack is deployed. */
type Environment = Readonly<Record<string, string>>;

interface AssemblyFunction {
  /** Folder of the code. */
  readonly folder: string;
  readonly timeoutSeconds: number;
  readonly environment: Environment;
}

interface AssemblyContainer {
  readonly name: string;
  readonly environment: Environment;
  readonly stopTimeoutSeconds?: number;
}

interface AssemblyJob {
  readonly environment: Environment;
  readonly retryStrategy?: RetryStrategy;
  /** Time limit of one try. */
  readonly timeoutSeconds?: number;
}

const Resource = z.looseObject({
  Type: z.string(),
  Properties: z.record(z.string(), z.unknown()).optional(),
});
type Resource = z.output<typeof Resource>;

const Template = z.looseObject({
  Resources: z.record(z.string(), Resource).default({}),
  Outputs: z
    .record(
      z.string(),
      z.looseObject({ Value: z.unknown(), Export: z.looseObject({ Name: z.string() }).optional() }),
    )
    .default({}),
});
type Template = z.output<typeof Template>;

const Assets = z.looseObject({
  files: z.record(z.string(), z.looseObject({ source: z.looseObject({ path: z.string().optional() }) })),
});

const Variables = z.array(z.looseObject({ Name: z.string(), Value: z.unknown() })).default([]);
const FunctionProperties = z.looseObject({
  Code: z.looseObject({ S3Key: z.string() }),
  Timeout: z.int().default(3),
  Environment: z.looseObject({ Variables: z.record(z.string(), z.unknown()).default({}) }).optional(),
});
const TaskProperties = z.looseObject({
  Family: z.string(),
  ContainerDefinitions: z.array(
    z.looseObject({ Name: z.string(), Environment: Variables, StopTimeout: z.int().optional() }),
  ),
});
const JobProperties = z.looseObject({
  JobDefinitionName: z.string(),
  ContainerProperties: z.looseObject({ Environment: Variables }).optional(),
  RetryStrategy: RetryStrategy.optional(),
  Timeout: z.looseObject({ AttemptDurationSeconds: z.int().min(60) }).optional(),
});

/** Properties that name a resource; the machines' tasks refer to it by that name. */
const NAMES = ["StateMachineName", "JobQueueName", "JobDefinitionName", "Family", "ClusterName"];

/**
 * @param folder of the assembly; functions that are bundled into files instead of folders are left out
 * @throws InputError when a file is no part of an assembly
 */
export function readAssembly(folder: string): Assembly {
  const files = readdirSync(folder).filter(name => name.endsWith(".template.json"));
  const templates = files.map(name => parse(Template, join(folder, name)));
  const sources = new Map(
    readdirSync(folder)
      .filter(name => name.endsWith(".assets.json"))
      .flatMap(name => Object.entries(parse(Assets, join(folder, name)).files))
      .flatMap(([hash, { source }]) => (source.path === undefined ? [] : [[hash, source.path] as const])),
  );
  const exported = Object.assign({}, ...templates.map(exportsOf)) as Symbols;
  const functions: Record<string, AssemblyFunction> = {};
  const machines: Record<string, string> = {};
  for (const [index, template] of templates.entries()) {
    const symbols: Record<string, string> = { ...exported };
    for (const [id, resource] of Object.entries(template.Resources)) {
      for (const attribute of ["", ".Arn"]) symbols[`${id}${attribute}`] = standIn(id, resource);
      if (resource.Type !== "AWS::Lambda::Function") continue;
      const { Code, Timeout, Environment } = FunctionProperties.parse(resource.Properties);
      const source = sources.get(Code.S3Key.replace(/\.zip$/, ""));
      if (source === undefined) continue;
      symbols[`${id}.Arn`] = `arn:aws:lambda:us-east-1:000000000000:function:${basename(source)}`;
      functions[basename(source)] = {
        folder: source,
        timeoutSeconds: Timeout,
        environment: texts(Object.entries(Environment?.Variables ?? {})),
      };
    }
    Object.assign(machines, readMachines(template, join(folder, files[index]), symbols));
  }
  const all = templates.flatMap(({ Resources }) => Object.entries(Resources));
  const of = (type: string) => all.filter(([, resource]) => resource.Type === type);
  return {
    machines,
    functions,
    tasks: Object.fromEntries(of("AWS::ECS::TaskDefinition").map(([, { Properties }]) => task(Properties))),
    jobs: Object.fromEntries(of("AWS::Batch::JobDefinition").map(([, { Properties }]) => job(Properties))),
    queues: of("AWS::Batch::JobQueue").map(([id, resource]) => standIn(id, resource)),
    buckets: of("AWS::S3::Bucket").map(([id, resource]) => standIn(id, resource)),
  };
}

function exportsOf({ Outputs, Resources }: Template): Symbols {
  const names: Record<string, string> = {};
  for (const { Value: value, Export: exportedAs } of Object.values(Outputs)) {
    const id = referenced(value);
    if (exportedAs !== undefined && id !== undefined && Resources[id] !== undefined)
      names[exportedAs.Name] = standIn(id, Resources[id]);
  }
  return names;
}

/** The logical id in `{ Ref }` or `{ Fn::GetAtt }`. */
function referenced(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const [operand] = Object.values(value);
  const id: unknown = Array.isArray(operand) ? operand[0] : operand;
  return typeof id === "string" ? id.split(".")[0] : undefined;
}

function standIn(id: string, { Properties: properties = {} }: Resource): string {
  const named = NAMES.map(name => properties[name]).find(name => typeof name === "string");
  return typeof named === "string" ? named : id;
}

function task(properties: unknown): [string, readonly AssemblyContainer[]] {
  const { Family, ContainerDefinitions } = TaskProperties.parse(properties);
  return [
    Family,
    ContainerDefinitions.map(({ Name, Environment, StopTimeout }) => ({
      name: Name,
      environment: variables(Environment),
      stopTimeoutSeconds: StopTimeout,
    })),
  ];
}

function job(properties: unknown): [string, AssemblyJob] {
  const { JobDefinitionName, ContainerProperties, RetryStrategy, Timeout } = JobProperties.parse(properties);
  return [
    JobDefinitionName,
    {
      environment: variables(ContainerProperties?.Environment ?? []),
      retryStrategy: RetryStrategy,
      timeoutSeconds: Timeout?.AttemptDurationSeconds,
    },
  ];
}

function variables(list: z.output<typeof Variables>): Environment {
  return texts(list.map(({ Name, Value }) => [Name, Value]));
}

function texts(entries: readonly (readonly [string, unknown])[]): Environment {
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function parse<Schema extends z.ZodType>(schema: Schema, file: string): z.output<Schema> {
  const parsed = schema.safeParse(JSON.parse(readFileSync(file, "utf8")));
  if (parsed.success) return parsed.data;
  throw new InputError({
    what: "no part of a cloud assembly",
    where: file,
    expected: z.prettifyError(parsed.error),
  });
}
