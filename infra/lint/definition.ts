// Finds faults in a definition that neither the type checker, nor CDK, nor AWS's own validation finds before it runs. The
// rules read the deployed JSON; each has a planted violation in its test.
import jsonata from "jsonata";
import { type ErrorSource, sourceOf } from "../../src/failure/machine-errors.ts";

export interface Problem {
  readonly rule: string;
  readonly where: string;
  readonly message: string;
}

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Fields = { readonly [key: string]: Json };

/** Integrations that state machines may use: the permissions of roles and the local runner both know each of them. */
const INTEGRATIONS: Readonly<Record<string, ErrorSource>> = {
  "lambda:invoke": "lambda",
  "ecs:runTask.sync": "ecs",
  "batch:submitJob.sync": "batch",
  "states:startExecution": "execution",
  "states:startExecution.sync:2": "execution",
};

/** Fields of JSONPath states: CDK writes them into JSONata states without a warning. */
const JSONPATH_FIELDS = [
  "Parameters",
  "InputPath",
  "OutputPath",
  "ResultPath",
  "ResultSelector",
  "ItemsPath",
  "SecondsPath",
  "TimeoutSecondsPath",
  "HeartbeatSecondsPath",
  "Variable",
];
const RESERVED = new Set(["states"]);
const NAME_LENGTH = 80;
const LABEL_LENGTH = 40;

export function lintDefinition(definition: Fields): Problem[] {
  const problems: Problem[] = [];
  const add = (rule: string, where: string, message: string): void => {
    problems.push({ rule, where, message });
  };
  if (definition.QueryLanguage !== "JSONata") add("jsonata", "(top)", "the machine is not JSONata");
  if (typeof definition.TimeoutSeconds !== "number")
    add("timeout", "(top)", "the machine has no TimeoutSeconds");
  const names = new Set<string>();
  lintChart(definition, new Set(), { names, add });
  return problems;
}

interface Pass {
  readonly names: Set<string>;
  readonly add: (rule: string, where: string, message: string) => void;
}

/** @param outer variables of the scopes around this one */
function lintChart(chart: Fields, outer: ReadonlySet<string>, pass: Pass): void {
  const states = fields(chart.States);
  const own = new Set(Object.values(states).flatMap(state => assignedBy(fields(state))));
  for (const variable of own)
    if (outer.has(variable))
      pass.add(
        "scope",
        chartName(chart),
        `$${variable} belongs to an outer scope and cannot be assigned here`,
      );
  const known = new Set([...outer, ...own]);
  lintFlow(chart, states, pass);
  for (const [name, value] of Object.entries(states)) {
    const state = fields(value);
    if (pass.names.has(name)) pass.add("unique-names", name, "a second state of this name in the machine");
    pass.names.add(name);
    if (name.length > NAME_LENGTH) pass.add("name-length", name, `longer than ${NAME_LENGTH} characters`);
    const { ItemProcessor, Branches, ...plain } = state;
    lintExpressions(plain, name, known, pass);
    lintErrors(state, name, pass);
    if (state.Type === "Task") lintTask(state, name, pass);
    if (state.Type === "Map") {
      lintMap(state, name, pass);
      // A child execution does not see what its parent has assigned.
      lintChart(fields(ItemProcessor), new Set(), pass);
    }
    if (state.Type === "Parallel")
      for (const branch of list(Branches)) lintChart(fields(branch), known, pass);
  }
}

function lintFlow(chart: Fields, states: Fields, { add }: Pass): void {
  const reached = new Set<string>();
  const open = [String(chart.StartAt)];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (reached.has(name)) continue;
    reached.add(name);
    if (!(name in states)) {
      add("next", name, "no state of this name");
      continue;
    }
    const next = successors(fields(states[name]));
    const type = fields(states[name]).Type;
    if (next.length === 0 && fields(states[name]).End !== true && type !== "Succeed" && type !== "Fail")
      add("next", name, "neither Next nor End");
    const { Next } = fields(states[name]);
    if (typeof Next === "string" && fields(states[Next] ?? {}).Type === "Fail")
      add("success-fails", name, `what succeeded goes on to ${Next}, which fails`);
    open.push(...next);
  }
  for (const name of Object.keys(states))
    if (!reached.has(name)) add("reachable", name, "nothing leads here");
}

function successors({ Next, Default, Choices, Catch }: Fields): string[] {
  const branches = [...list(Choices ?? []), ...list(Catch ?? [])].map(branch => fields(branch).Next);
  return [Next, Default, ...branches].filter(name => typeof name === "string");
}

function assignedBy(state: Fields): string[] {
  const branches = [...list(state.Choices ?? []), ...list(state.Catch ?? [])].map(fields);
  return [state, ...branches].flatMap(({ Assign }) => Object.keys(fields(Assign ?? {})));
}

function lintExpressions(value: Json, where: string, known: ReadonlySet<string>, pass: Pass): void {
  if (typeof value === "string") {
    const expression = /^\{%(.*)%\}$/s.exec(value)?.[1];
    if (expression === undefined) {
      if (/\{%|%\}|\$\.|\$\$\./.test(value)) pass.add("jsonata", where, `half an expression: ${value}`);
      return;
    }
    try {
      jsonata(expression);
    } catch (error) {
      pass.add("expression", where, `${value}: ${(error as Error).message}`);
    }
    const local = new Set([...expression.matchAll(/\$(\w+)\s*:=/g)].map(([, name]) => name));
    for (const [, name] of expression.matchAll(/\$(\w+)\b(?!\s*\()/g))
      if (!known.has(name) && !local.has(name) && !RESERVED.has(name))
        pass.add("variables", where, `$${name} is not assigned in this scope`);
  } else if (Array.isArray(value)) {
    for (const item of value) lintExpressions(item, where, known, pass);
  } else if (typeof value === "object" && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      if (JSONPATH_FIELDS.includes(key) || key.endsWith(".$"))
        pass.add("jsonata", where, `${key} belongs to JSONPath states`);
      lintExpressions(item, where, known, pass);
    }
  }
}

function lintErrors(state: Fields, where: string, { add }: Pass): void {
  const source = state.Type === "Map" ? "map" : INTEGRATIONS[integrationOf(state) ?? ""];
  for (const kind of ["Retry", "Catch"]) {
    const entries = list(state[kind] ?? []).map(fields);
    entries.forEach((entry, index) => {
      const names = list(entry.ErrorEquals).map(String);
      for (const name of names) {
        const from = sourceOf(name);
        if (from === undefined) add("error-names", where, `${kind}: nothing throws ${name}`);
        else if (from !== "any" && from !== source)
          add("error-names", where, `${kind}: ${name} comes from ${from}, not from ${source}`);
      }
      if (names.includes("States.ALL") && (names.length > 1 || index < entries.length - 1))
        add("catch-all", where, `${kind}: States.ALL has to stand alone and last`);
      if (kind === "Retry" && (entry.MaxDelaySeconds === undefined || entry.JitterStrategy !== "FULL"))
        add("retry-bounds", where, "a retry without a longest delay and full jitter");
    });
  }
}

function lintTask(state: Fields, where: string, { add }: Pass): void {
  const integration = integrationOf(state) ?? "";
  const isToken = integration.endsWith(".waitForTaskToken");
  const base = integration.replace(".waitForTaskToken", "");
  if (
    !(integration in INTEGRATIONS) &&
    !(isToken && (base in INTEGRATIONS || `${base}.sync` in INTEGRATIONS))
  )
    add("integration", where, `${integration} is not one that roles and the local runner know`);
  const { TimeoutSeconds, HeartbeatSeconds } = state;
  const args = fields(state.Arguments ?? {});
  if (TimeoutSeconds === undefined) add("timeout", where, "a task without TimeoutSeconds");
  if (isToken && HeartbeatSeconds === undefined)
    add("heartbeat", where, "a token without a heartbeat waits a year when its worker dies");
  if (HeartbeatSeconds !== undefined && integration.includes(".sync"))
    add("heartbeat", where, "a .sync task sends no heartbeat");
  if (typeof HeartbeatSeconds === "number" && typeof TimeoutSeconds === "number")
    if (HeartbeatSeconds >= TimeoutSeconds)
      add("heartbeat", where, "the heartbeat is not below the time-out");
  if (integration.startsWith("ecs:runTask")) {
    if (args.LaunchType !== undefined) add("capacity-provider", where, "LaunchType excludes Spot");
    if (args.CapacityProviderStrategy === undefined)
      add("capacity-provider", where, "no capacity provider: neither Spot nor on demand is chosen");
  }
  if (integration.startsWith("batch:submitJob")) {
    const overrides = fields(args.ContainerOverrides ?? {});
    for (const field of ["Vcpus", "Memory"])
      if (field in overrides) add("batch-resources", where, `${field} is ignored: use ResourceRequirements`);
  }
}

function lintMap(state: Fields, where: string, { add }: Pass): void {
  const processor = fields(state.ItemProcessor);
  const config = fields(processor.ProcessorConfig ?? {});
  if (config.Mode !== "DISTRIBUTED") return;
  if (typeof state.Label !== "string" || state.Label.length > LABEL_LENGTH)
    add("label", where, `a Distributed Map needs a label of at most ${LABEL_LENGTH} characters`);
  if (config.ExecutionType !== "STANDARD" && waits(processor))
    add("standard-children", where, "an Express child cannot wait for a task");
  if (fields(fields(state.ResultWriter ?? {}).Arguments ?? {}).Bucket === undefined)
    add(
      "result-writer",
      where,
      "without a ResultWriter thousands of results break the 256 KiB limit at the end",
    );
  if (state.ItemBatcher !== undefined)
    add("item-batcher", where, "one failure would repeat a whole batch of episodes");
  if (state.ToleratedFailurePercentage === undefined)
    add("tolerance", where, "without a tolerance one lost host ends the iteration");
}

function waits(chart: Fields): boolean {
  return Object.values(fields(chart.States)).some(state => {
    const integration = integrationOf(fields(state));
    return integration?.includes(".sync") || integration?.includes(".waitForTaskToken");
  });
}

function integrationOf({ Resource }: Fields): string | undefined {
  return typeof Resource === "string" ? Resource.split(":::").at(-1) : undefined;
}

function chartName(chart: Fields): string {
  return `the states from ${String(chart.StartAt)}`;
}

function fields(value: Json | undefined): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
