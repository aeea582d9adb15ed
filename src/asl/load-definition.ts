// Makes a machine that can run of the text of a definition. Every error names the state and the path to the fault.
import type { z } from "zod";
import { InputError } from "../failure/errors.ts";
import {
  ItemProcessorSchema,
  MachineSchema,
  type RawCatcher,
  type RawRetrier,
  type RawState,
  ScopeSchema,
  StateSchema,
} from "./definition.ts";
import { isJsonObject, type Json, type JsonObject } from "./json-value.ts";
import type {
  Assignments,
  Catcher,
  ChoiceState,
  Machine,
  MapState,
  Retrier,
  State,
  StateScope,
} from "./machine.ts";
import { parseResource } from "./resource.ts";
import { refuse, refuseUnsupported } from "./unsupported.ts";
import { compileTemplate, type Template } from "./value-template.ts";

/** Limit of CreateStateMachine. */
const LONGEST_DEFINITION = 1024 * 1024;

/** Passed down while loading: where we are, and which names are taken or visible there. */
interface Position {
  /** `machine NAME` */
  readonly machine: string;
  /** `States.Train` */
  readonly path: string;
  readonly isJsonata: boolean;
  /** Names of the states loaded so far. */
  readonly names: Set<string>;
  /** Variables of the scopes around that are visible here. */
  readonly outerVariables: ReadonlySet<string>;
}

/**
 * @param name       of the machine, for messages and ARNs
 * @param definition text, or the parsed JSON
 * @throws InputError naming the state and the path: wrong JSON, unknown or unsupported fields, missing targets,
 *   names used twice, expressions that do not parse
 */
export function loadDefinition(name: string, definition: string | Json): Machine {
  const machine = `machine ${name}`;
  const text = typeof definition === "string" ? definition : JSON.stringify(definition);
  if (Buffer.byteLength(text) > LONGEST_DEFINITION)
    throw new InputError({
      what: "definition too long",
      where: machine,
      expected: `at most 1 MiB, got ${Buffer.byteLength(text)} bytes`,
    });
  if (!/^[\w.-]{1,80}$/.test(name))
    throw new InputError({
      what: "invalid machine name",
      where: name,
      expected: "1 to 80 letters, digits, dots, - or _",
    });
  const raw = typeof definition === "string" ? parseText(definition, machine) : definition;
  const parsed = check(MachineSchema, raw, machine, "", undefined);
  const position: Position = {
    machine,
    path: "States",
    isJsonata: parsed.QueryLanguage === "JSONata",
    names: new Set(),
    outerVariables: new Set(),
  };
  return {
    ...loadScope(parsed, position),
    name,
    definition: raw,
    timeoutSeconds: parsed.TimeoutSeconds,
  };
}

function parseText(text: string, machine: string): Json {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InputError(
      { what: "invalid definition", where: machine, expected: `expected JSON: ${String(error)}` },
      { cause: error },
    );
  }
}

function loadScope(scope: z.output<typeof ScopeSchema>, position: Position): StateScope {
  const own = new Set<string>();
  for (const state of Object.values(scope.States)) for (const name of assignedNames(state)) own.add(name);
  for (const name of own)
    if (position.outerVariables.has(name))
      throw new InputError({
        what: "variable assigned in two scopes",
        where: `${position.machine}: ${position.path}`,
        expected: `expected a name of its own, got ${name}, which a scope around assigns`,
        fix: "rename it: values do not leave a Map or Parallel by variables, only by its result",
      });
  const inner = { ...position, outerVariables: new Set([...position.outerVariables, ...own]) };
  const states = new Map<string, State>();
  for (const [name, raw] of Object.entries(scope.States)) states.set(name, loadState(name, raw, inner));
  const target = (name: string, from: string) => {
    if (!states.has(name))
      throw new InputError({
        what: "missing state",
        where: `${position.machine}: ${from}`,
        expected: `expected one of ${[...states.keys()].join(", ")}, got ${JSON.stringify(name)}`,
      });
  };
  target(scope.StartAt, `${position.path.replace(/\.?States$/, "") || "top level"}.StartAt`);
  for (const state of states.values())
    for (const [field, name] of targets(state))
      target(name, `state "${state.name}": ${position.path}.${state.name}.${field}`);
  return { startAt: scope.StartAt, states };
}

function* targets(state: State): Generator<readonly [string, string]> {
  if (state.type === "Choice") {
    for (const [index, rule] of state.rules.entries()) yield [`Choices[${index}].Next`, rule.next];
    if (state.otherwise !== undefined) yield ["Default", state.otherwise.next];
    return;
  }
  if ("next" in state && state.next !== undefined) yield ["Next", state.next];
  if ("catchers" in state)
    for (const [index, catcher] of state.catchers.entries()) yield [`Catch[${index}].Next`, catcher.next];
}

/** Variables that a state and its rules assign. A catcher may assign a name of another scope (recorded on AWS). */
function assignedNames(state: unknown): string[] {
  if (!isJsonObject(state)) return [];
  const places = [state, ...(Array.isArray(state.Choices) ? state.Choices : [])];
  return places.flatMap(place =>
    isJsonObject(place) && isJsonObject(place.Assign) ? Object.keys(place.Assign) : [],
  );
}

function loadState(name: string, raw: unknown, scope: Position): State {
  const path = `${scope.path}.${name}`;
  const where = `${scope.machine}: state "${name}": ${path}`;
  if (!isJsonObject(raw))
    throw new InputError({ what: "invalid state", where, expected: "expected an object" });
  if (scope.names.has(name))
    throw new InputError({
      what: "state name used twice",
      where,
      expected: "expected names that are unique in the whole machine",
    });
  scope.names.add(name);
  const language = raw.QueryLanguage ?? (scope.isJsonata ? "JSONata" : "JSONPath");
  if (language !== "JSONata")
    throw refuse(
      `QueryLanguage ${String(language)}`,
      where,
      'write "QueryLanguage": "JSONata" at the top of the machine',
    );
  refuseUnsupported(raw, where);
  return build(name, check(StateSchema, raw, scope.machine, path, name), { ...scope, path }, where);
}

function build(name: string, raw: RawState, position: Position, where: string): State {
  const template = <T extends Json | undefined>(
    value: T,
    field: string,
  ): T extends undefined ? Template | undefined : Template =>
    (value === undefined ? undefined : compileTemplate(value, field, `${where}.${field}`)) as never;
  const step = (state: { Next?: string; End?: boolean; Assign?: JsonObject; Output?: Json }) => ({
    name,
    next: nextOf(state, where),
    assign: assignments(state.Assign, "Assign", where),
    output: template(state.Output, "Output"),
  });
  const failing = (state: { Retry?: RawRetrier[]; Catch?: RawCatcher[] }) => ({
    retriers: (state.Retry ?? []).map(toRetrier),
    catchers: (state.Catch ?? []).map((catcher, index) => toCatcher(catcher, `${where}.Catch[${index}]`)),
  });
  switch (raw.Type) {
    case "Pass":
      return { type: "Pass", ...step(raw) };
    case "Task":
      return {
        type: "Task",
        ...step(raw),
        ...failing(raw),
        resource: parseResource(raw.Resource, `${where}.Resource`),
        arguments: template(raw.Arguments, "Arguments"),
        timeoutSeconds: template(raw.TimeoutSeconds as Json | undefined, "TimeoutSeconds"),
      };
    case "Choice":
      return buildChoice(name, raw, where);
    case "Wait":
      return { type: "Wait", ...step(raw), seconds: template(raw.Seconds as Json, "Seconds") };
    case "Succeed":
      return { type: "Succeed", name, output: template(raw.Output, "Output") };
    case "Fail":
      return { type: "Fail", name, error: template(raw.Error, "Error"), cause: template(raw.Cause, "Cause") };
    case "Parallel":
      return {
        type: "Parallel",
        ...step(raw),
        ...failing(raw),
        arguments: template(raw.Arguments, "Arguments"),
        branches: raw.Branches.map((branch, index) =>
          loadInner(ScopeSchema, branch, position, `Branches[${index}]`, name),
        ),
      };
    case "Map":
      return { ...step(raw), ...failing(raw), ...buildMap(name, raw, position, where) };
    default:
      return raw satisfies never;
  }
}

function buildChoice(name: string, raw: RawState & { Type: "Choice" }, where: string): ChoiceState {
  return {
    type: "Choice",
    name,
    rules: raw.Choices.map((rule, index) => {
      const at = `${where}.Choices[${index}]`;
      const field = `Choices[${index}]`;
      return {
        condition: compileTemplate(rule.Condition as Json, `${field}/Condition`, `${at}.Condition`),
        next: rule.Next,
        assign: assignments(rule.Assign, `${field}/Assign`, at),
        output:
          rule.Output === undefined
            ? undefined
            : compileTemplate(rule.Output, `${field}/Output`, `${at}.Output`),
      };
    }),
    otherwise:
      raw.Default === undefined
        ? undefined
        : {
            next: raw.Default,
            assign: assignments(raw.Assign, "Assign", where),
            output:
              raw.Output === undefined ? undefined : compileTemplate(raw.Output, "Output", `${where}.Output`),
          },
  };
}

function buildMap(name: string, raw: RawState & { Type: "Map" }, position: Position, where: string) {
  const processor = check(
    ItemProcessorSchema,
    raw.ItemProcessor,
    position.machine,
    `${position.path}.ItemProcessor`,
    name,
  );
  if (raw.ItemReader !== undefined && raw.Items !== undefined)
    throw new InputError({ what: "Items and ItemReader", where, expected: "expected one of them" });
  const template = (value: unknown, field: string) =>
    value === undefined ? undefined : compileTemplate(value as Json, field, `${where}.${field}`);
  // A child cannot see the variables of its parent.
  const inside = { ...position, outerVariables: new Set<string>() };
  const { ProcessorConfig: _, ...scope } = processor;
  return {
    type: "Map" as const,
    label: raw.Label ?? defaultLabel(name),
    items: template(raw.Items, "Items"),
    itemSelector: template(raw.ItemSelector, "ItemSelector"),
    readerArguments: template(raw.ItemReader?.Arguments, "ItemReader/Arguments"),
    writerArguments: template(raw.ResultWriter?.Arguments, "ResultWriter/Arguments"),
    maxConcurrency: template(raw.MaxConcurrency, "MaxConcurrency"),
    toleratedFailureCount: template(raw.ToleratedFailureCount, "ToleratedFailureCount"),
    toleratedFailurePercentage: template(raw.ToleratedFailurePercentage, "ToleratedFailurePercentage"),
    processor: loadInner(ScopeSchema, scope, inside, "ItemProcessor", name),
  } satisfies Omit<MapState, "name" | "next" | "assign" | "output" | "retriers" | "catchers">;
}

function defaultLabel(name: string): string {
  return name.replace(/[^\w-]/g, "").slice(0, 40) || "Map";
}

function loadInner(
  schema: typeof ScopeSchema,
  raw: unknown,
  position: Position,
  field: string,
  state: string,
): StateScope {
  const path = `${position.path}.${field}`;
  const scope = check(schema, raw, position.machine, path, state);
  return loadScope(scope, {
    ...position,
    path: `${path}.States`,
    isJsonata: position.isJsonata || scope.QueryLanguage === "JSONata",
  });
}

function nextOf(
  { Next: next, End: end }: { Next?: string; End?: boolean },
  where: string,
): string | undefined {
  if ((next !== undefined) === (end === true))
    throw new InputError({
      what: "invalid transition",
      where,
      expected: 'expected either Next or "End": true',
    });
  return next;
}

function assignments(assign: JsonObject | undefined, field: string, where: string): Assignments {
  return Object.entries(assign ?? {}).map(([name, value]) => {
    if (!/^[\p{L}_][\p{L}\p{N}_]{0,79}$/u.test(name) || name === "states")
      throw new InputError({
        what: "invalid variable name",
        where: `${where}.${field}`,
        expected: `expected letters, digits and _, at most 80, and not "states", got ${JSON.stringify(name)}`,
      });
    return [name, compileTemplate(value ?? null, `${field}/${name}`, `${where}.${field}.${name}`)] as const;
  });
}

/** Defaults: Amazon States Language, "Retrying after error". */
function toRetrier(raw: RawRetrier): Retrier {
  return {
    errorEquals: raw.ErrorEquals,
    intervalSeconds: raw.IntervalSeconds ?? 1,
    maxAttempts: raw.MaxAttempts ?? 3,
    backoffRate: raw.BackoffRate ?? 2,
    maxDelaySeconds: raw.MaxDelaySeconds,
    jitter: raw.JitterStrategy ?? "NONE",
  };
}

function toCatcher(raw: RawCatcher, where: string): Catcher {
  return {
    errorEquals: raw.ErrorEquals,
    next: raw.Next,
    assign: assignments(raw.Assign, "Assign", where),
    output: raw.Output === undefined ? undefined : compileTemplate(raw.Output, "Output", `${where}.Output`),
  };
}

function check<Schema extends z.ZodType>(
  schema: Schema,
  raw: unknown,
  machine: string,
  path: string,
  state: string | undefined,
): z.output<Schema> {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue.path.reduce<string>(
    (shown, part) =>
      typeof part === "number"
        ? `${shown}[${part}]`
        : shown === ""
          ? String(part)
          : `${shown}.${String(part)}`,
    path,
  );
  const more = parsed.error.issues.length - 1;
  throw new InputError(
    {
      what: "invalid state machine",
      where: `${machine}: ${state === undefined ? "" : `state "${state}": `}${at || "(top level)"}`,
      expected: `${issue.message}${more > 0 ? ` (and ${more} more)` : ""}`,
    },
    { cause: parsed.error },
  );
}
