// The types of a loaded state machine: checked, linked and with its expressions compiled (load-definition.ts).
import type { Json } from "./json-value.ts";
import type { Resource } from "./resource.ts";
import type { Template } from "./value-template.ts";

export interface StateScope {
  readonly startAt: string;
  readonly states: ReadonlyMap<string, State>;
}

export interface Machine extends StateScope {
  readonly name: string;
  readonly definition: Json;
  readonly timeoutSeconds: number | undefined;
}

export interface Retrier {
  readonly errorEquals: readonly string[];
  readonly intervalSeconds: number;
  readonly maxAttempts: number;
  readonly backoffRate: number;
  readonly maxDelaySeconds: number | undefined;
  readonly jitter: "FULL" | "NONE";
}

export type Assignments = readonly (readonly [string, Template])[];

export interface Catcher {
  readonly errorEquals: readonly string[];
  readonly next: string;
  readonly assign: Assignments;
  readonly output: Template | undefined;
}

interface Step {
  readonly name: string;
  /** undefined: the state ends its scope */
  readonly next: string | undefined;
  readonly assign: Assignments;
  readonly output: Template | undefined;
}

interface Failing {
  readonly retriers: readonly Retrier[];
  readonly catchers: readonly Catcher[];
}

interface PassState extends Step {
  readonly type: "Pass";
}

export interface TaskState extends Step, Failing {
  readonly type: "Task";
  readonly resource: Resource;
  readonly arguments: Template | undefined;
  readonly timeoutSeconds: Template | undefined;
}

interface ChoiceRule {
  readonly condition: Template;
  readonly next: string;
  readonly assign: Assignments;
  readonly output: Template | undefined;
}

export interface ChoiceState {
  readonly type: "Choice";
  readonly name: string;
  readonly rules: readonly ChoiceRule[];
  /** Taken when no rule holds. */
  readonly otherwise: Omit<ChoiceRule, "condition"> | undefined;
}

interface WaitState extends Step {
  readonly type: "Wait";
  readonly seconds: Template;
}

interface SucceedState {
  readonly type: "Succeed";
  readonly name: string;
  readonly output: Template | undefined;
}

interface FailState {
  readonly type: "Fail";
  readonly name: string;
  readonly error: Template | undefined;
  readonly cause: Template | undefined;
}

export interface ParallelState extends Step, Failing {
  readonly type: "Parallel";
  readonly arguments: Template | undefined;
  readonly branches: readonly StateScope[];
}

export interface MapState extends Step, Failing {
  readonly type: "Map";
  readonly label: string;
  readonly items: Template | undefined;
  readonly itemSelector: Template | undefined;
  /** undefined: the items come from the state */
  readonly readerArguments: Template | undefined;
  /** undefined: results stay in the state's output */
  readonly writerArguments: Template | undefined;
  readonly maxConcurrency: Template | undefined;
  readonly toleratedFailureCount: Template | undefined;
  readonly toleratedFailurePercentage: Template | undefined;
  readonly processor: StateScope;
}

export type State =
  | PassState
  | TaskState
  | ChoiceState
  | WaitState
  | SucceedState
  | FailState
  | ParallelState
  | MapState;
