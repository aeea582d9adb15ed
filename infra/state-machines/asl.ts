// Amazon States Language, as far as our machines use it: JSONata only. Fields of JSONPath states do not exist here, so
// nobody can write them by mistake (CDK emits them into JSONata states without a warning).
import type { MachineErrorName } from "../../src/failure/machine-errors.ts";

/** JSON with JSONata in `{% … %}` strings; CDK tokens are strings too. */
export type Template =
  | string
  | number
  | boolean
  | null
  | readonly Template[]
  | { readonly [key: string]: Template };

export interface Retrier {
  readonly ErrorEquals: readonly MachineErrorName[];
  readonly IntervalSeconds: number;
  readonly MaxAttempts: number;
  readonly BackoffRate: number;
  readonly MaxDelaySeconds: number;
  readonly JitterStrategy: "FULL";
}

export interface Catcher {
  readonly ErrorEquals: readonly MachineErrorName[];
  readonly Next: string;
  readonly Assign?: Template;
  readonly Output?: Template;
}

interface Common {
  readonly Comment?: string;
  readonly Assign?: Template;
  readonly Output?: Template;
}

interface Flow {
  /** Left out: the state that is written next (`inOrder`). */
  readonly Next?: string;
  readonly End?: true;
}

interface Caught {
  readonly Retry?: readonly Retrier[];
  readonly Catch?: readonly Catcher[];
}

export interface TaskState extends Common, Flow, Caught {
  readonly Type: "Task";
  readonly Resource: string;
  readonly Arguments: { readonly [key: string]: Template };
  readonly TimeoutSeconds: number | string;
  readonly HeartbeatSeconds?: number;
}

export interface ChoiceState extends Common {
  readonly Type: "Choice";
  readonly Choices: readonly {
    readonly Condition: string;
    readonly Next: string;
    readonly Assign?: Template;
    readonly Output?: Template;
  }[];
  /** Left out: the state that is written next. */
  readonly Default?: string;
}

export interface MapState extends Common, Flow, Caught {
  readonly Type: "Map";
  readonly Label: string;
  readonly ItemReader: {
    readonly Resource: string;
    readonly ReaderConfig: { readonly InputType: "JSONL" };
    readonly Arguments: { readonly Bucket: string; readonly Key: string };
  };
  readonly ItemSelector?: Template;
  readonly MaxConcurrency: number;
  readonly ToleratedFailurePercentage: number;
  readonly ItemProcessor: Flowchart & {
    readonly ProcessorConfig: { readonly Mode: "DISTRIBUTED"; readonly ExecutionType: "STANDARD" };
  };
  readonly ResultWriter: {
    readonly Resource: string;
    readonly Arguments: { readonly Bucket: string; readonly Prefix: string };
  };
}

interface ParallelState extends Common, Flow, Caught {
  readonly Type: "Parallel";
  readonly Branches: readonly Flowchart[];
}

export type State =
  | TaskState
  | ChoiceState
  | MapState
  | ParallelState
  | ({ readonly Type: "Pass" } & Common & Flow)
  | ({ readonly Type: "Wait"; readonly Seconds: number } & Common & Flow)
  | { readonly Type: "Succeed"; readonly Comment?: string; readonly Output?: Template }
  | { readonly Type: "Fail"; readonly Comment?: string; readonly Error: string; readonly Cause: string };

export interface Flowchart {
  readonly StartAt: string;
  readonly States: Readonly<Record<string, State>>;
}

export interface Definition extends Flowchart {
  readonly QueryLanguage: "JSONata";
  readonly Comment: string;
  readonly TimeoutSeconds: number;
}

/** States one after another as they are written; a state that names no successor goes on to the next one. */
export function inOrder(states: Readonly<Record<string, State>>): Flowchart {
  const names = Object.keys(states);
  const linked = Object.entries(states).map(([name, state], index) => {
    const following = names[index + 1];
    return [name, following === undefined ? ending(state) : leadingTo(state, following)] as const;
  });
  return { StartAt: names[0], States: Object.fromEntries(linked) };
}

function leadingTo(state: State, following: string): State {
  switch (state.Type) {
    case "Choice":
      return { Default: following, ...state };
    case "Succeed":
    case "Fail":
      return state;
    default:
      return state.Next === undefined && state.End === undefined ? { ...state, Next: following } : state;
  }
}

function ending(state: State): State {
  if (state.Type === "Choice" || state.Type === "Succeed" || state.Type === "Fail") return state;
  return state.Next === undefined ? { ...state, End: true } : state;
}
