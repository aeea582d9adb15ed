// The kinds of steps that an iteration is made of. infra/state-machines says what each becomes on AWS.
import type { StateName } from "./states.ts";

export const STAGES = [
  "plan",
  "prepare",
  "score",
  "close",
  "publish",
  "summarise",
  "preflight",
  "next-step",
] as const;
/** A stage that a deployment calls as a function: its folder in lambdas/, and its file in src/stages. */
export type StageName = (typeof STAGES)[number];

/** JSONata expressions by key: an event of a stage, or an execution's input. */
export type Expressions = Readonly<Record<string, string>>;

export type Step = Call | ForEachShard | Together | Evaluate;

/** Calls a stage. */
export interface Call {
  readonly call: StageName;
  readonly state: StateName;
  readonly input: Expressions;
  /** Variable that keeps the stage's output. */
  readonly keep?: string;
  /** The next step gets the stage's output, or the machine's end does. */
  readonly returns?: true;
  /** A run that was told to stop ends here, without a failure. */
  readonly mayStop?: true;
  /** Calls again after a pause until the output is ready. */
  readonly until?: {
    readonly state: StateName;
    readonly ready: string;
    readonly wait: StateName;
    readonly seconds: number;
  };
}

/** Plays every shard of a plan, many at once; nothing where the plan has none. */
export interface ForEachShard {
  readonly forEachShard: StateName;
  /** Asks whether there is any. */
  readonly state: StateName;
  /** Variable that keeps the plan. */
  readonly plan: string;
}

/** A training job, and other steps beside it whose failure is none of this iteration. */
export interface Together {
  readonly together: StateName;
  readonly train: { readonly run: string; readonly iteration: string };
  readonly meanwhile: { readonly state: StateName; readonly when: string; readonly steps: readonly Step[] };
}

/** Runs an evaluation and waits for it, when the condition holds. */
export interface Evaluate {
  readonly evaluate: StateName;
  readonly state: StateName;
  readonly when: string;
  readonly input: Expressions;
}
