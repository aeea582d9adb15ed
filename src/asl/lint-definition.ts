// What a definition may say and should not: faults that loading accepts, CDK synthesizes in silence, and that cost a
// run at its end. Each rule names the public case it comes from.
import { SERVICE_ERRORS, STATES_ERRORS } from "./error-names.ts";
import { isJsonObject } from "./json-value.ts";
import type { Machine, MapState, State, StateScope, TaskState } from "./machine.ts";
import type { Template } from "./value-template.ts";

export interface LintFinding {
  readonly rule:
    | "error-name"
    | "error-order"
    | "token-limits"
    | "sync-heartbeat"
    | "map-results"
    | "batch-fields";
  readonly state: string;
  readonly message: string;
}

/** @param ownErrors names that our handlers throw */
export function lintDefinition(machine: Machine, ownErrors: readonly string[] = []): readonly LintFinding[] {
  const known = new Set<string>([...STATES_ERRORS, ...SERVICE_ERRORS, ...ownErrors]);
  return statesOf(machine).flatMap(state => [
    ...("retriers" in state ? lintErrorNames(state, known) : []),
    ...(state.type === "Task" ? lintTask(state) : []),
    ...(state.type === "Map" ? lintMap(state) : []),
  ]);
}

function statesOf(scope: StateScope): State[] {
  return [...scope.states.values()].flatMap(state => {
    if (state.type === "Map") return [state, ...statesOf(state.processor)];
    return state.type === "Parallel" ? [state, ...state.branches.flatMap(statesOf)] : [state];
  });
}

/** wellcomecollection/catalogue-pipeline#3554: `Ecs.` for `ECS.`, so the retrier never fired. */
function lintErrorNames(
  { name, retriers, catchers }: Extract<State, { readonly retriers: unknown }>,
  known: ReadonlySet<string>,
): LintFinding[] {
  const lists = [...retriers, ...catchers].map(({ errorEquals }) => errorEquals);
  const unknown = lists
    .flat()
    .filter(error => !known.has(error))
    .map(error => {
      const meant = [...known].find(one => one.toLowerCase() === error.toLowerCase());
      return {
        rule: "error-name" as const,
        state: name,
        message: `no service reports ${error}${meant === undefined ? "" : `; write ${meant}`}`,
      };
    });
  const misplaced = [retriers, catchers].flatMap(group =>
    group.flatMap(({ errorEquals }, index) =>
      errorEquals.includes("States.ALL") && (errorEquals.length > 1 || index < group.length - 1)
        ? [{ rule: "error-order" as const, state: name, message: "States.ALL must stand alone and last" }]
        : [],
    ),
  );
  return [...unknown, ...misplaced];
}

/**
 * accelerated-intelligent-document-processing-on-aws#755: a token that nobody returned held an execution for 31 days.
 * catalogue-pipeline#3597: beats of a state without HeartbeatSeconds are thrown away. aws/aws-cdk#18993: vcpus and
 * memory of a job are ignored in their old fields.
 */
function lintTask({
  name,
  resource,
  timeoutSeconds,
  heartbeatSeconds,
  arguments: given,
}: TaskState): LintFinding[] {
  const found: LintFinding[] = [];
  if (resource.pattern === "waitForTaskToken") {
    const literal = (template: typeof timeoutSeconds) =>
      template?.kind === "literal" ? Number(template.value) : undefined;
    if (timeoutSeconds === undefined || heartbeatSeconds === undefined)
      found.push({
        rule: "token-limits",
        state: name,
        message: "a task with a token needs TimeoutSeconds and HeartbeatSeconds",
      });
    else if ((literal(heartbeatSeconds) ?? 0) >= (literal(timeoutSeconds) ?? Number.POSITIVE_INFINITY))
      found.push({
        rule: "token-limits",
        state: name,
        message: "HeartbeatSeconds must be below TimeoutSeconds",
      });
  } else if (heartbeatSeconds !== undefined)
    found.push({
      rule: "sync-heartbeat",
      state: name,
      message: "nothing sends heartbeats here: HeartbeatSeconds is without effect",
    });
  if (resource.service === "batch")
    for (const old of fieldNames(field(given, "ContainerOverrides")).filter(
      one => one === "Vcpus" || one === "Memory",
    ))
      found.push({
        rule: "batch-fields",
        state: name,
        message: `${old} is ignored; write ResourceRequirements`,
      });
  return found;
}

/** Thousands of results in a state's output break the 256 KiB limit at the very end, after all money is spent. */
function lintMap({ name, isDistributed, resultWriter, output }: MapState): LintFinding[] {
  const isDiscarded = output?.kind === "literal";
  if (!isDistributed || resultWriter.arguments !== undefined || isDiscarded) return [];
  return [
    {
      rule: "map-results",
      state: name,
      message: "a Distributed Map needs a ResultWriter with Arguments, or an Output that drops its results",
    },
  ];
}

function field(template: Template | undefined, name: string): Template | undefined {
  if (template?.kind === "object") return template.fields.find(([key]) => key === name)?.[1];
  if (template?.kind !== "literal" || !isJsonObject(template.value)) return undefined;
  return { kind: "literal", value: template.value[name] ?? null };
}

function fieldNames(template: Template | undefined): string[] {
  if (template?.kind === "object") return template.fields.map(([key]) => key);
  return template?.kind === "literal" && isJsonObject(template.value) ? Object.keys(template.value) : [];
}
