// A stage: one step of a run as a value. A Lambda function calls it with settings from its environment, a laptop with
// settings as an argument, a test as it likes. Stages hand each other store keys and counts, never data, and each may run
// again: it keeps what is there.
import { z } from "zod";
import { InputError, InvariantError } from "../failure/errors.ts";
import { type PhasePrefix, parsePhase } from "../run/keys.ts";
import type { Environment, Variables } from "../settings/environment.ts";
import type { ObjectStore } from "../store/object-store.ts";

/** Figures that a deployment shows on its dashboard and sets alarms on. */
type StageMetrics = Readonly<
  Record<string, { readonly value: number; readonly unit: "None" | "Count" | "Percent" }>
>;

/** What every stage is given. A stage that needs more of its surroundings names it in a type of its own. */
export interface StageServices {
  readonly store: ObjectStore;
  /** Fires when time is up: the stage cleans up what it began, at once. */
  readonly signal: AbortSignal;
  /** @param run the figures are of; none for those of a whole deployment */
  readonly onMetrics: (metrics: StageMetrics, run?: string) => void;
  readonly onWarning: (message: string) => void;
}

/** @typeParam Run `(input, settings, services) => output`; its settings may allow more than the environment gives */
export interface Stage<
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
  V extends Variables = Variables,
  Run = unknown,
> {
  readonly input: Input;
  readonly output: Output;
  /** How a deployment tells a function its settings. */
  readonly settings: Environment<V>;
  readonly run: Run;
}

/** Types of a stage's parts, checked against each other. */
export function stage<
  Input extends z.ZodType,
  Output extends z.ZodType,
  V extends Variables,
  Run extends (
    input: z.output<Input>,
    settings: ReturnType<Environment<V>["fromEnvironment"]>,
    services: never,
  ) => Promise<z.output<Output>>,
>(parts: Stage<Input, Output, V, Run>): Stage<Input, Output, V, Run> {
  return parts;
}

type AnyRun = (input: never, settings: never, services: never) => Promise<unknown>;

/**
 * Calls a stage with an event of its machine.
 *
 * @throws InputError for an event that is not the stage's input; unknown keys are refused, so that a machine and its
 *   stage cannot drift apart unseen. @throws InvariantError for a result that is not its output
 */
export async function callStage<Output extends z.ZodType, V extends Variables, Run extends AnyRun>(
  stage: Stage<z.ZodType, Output, V, Run>,
  event: unknown,
  settings: Parameters<Run>[1],
  services: Parameters<Run>[2],
): Promise<z.output<Output>> {
  const input = stage.input.safeParse(event);
  if (!input.success)
    throw new InputError({
      what: "invalid input of a stage",
      where: "the event",
      expected: problemsOf(input.error),
    });
  const output = stage.output.safeParse(await stage.run(input.data as never, settings, services));
  if (output.success) return output.data;
  throw new InvariantError("a stage returned something else than it declares", {
    problems: problemsOf(output.error),
  });
}

function problemsOf({ issues }: z.ZodError): string {
  return issues.map(({ path, message }) => `${path.join(".") || "(top)"}: ${message}`).join("; ");
}

/**
 * Where a deployment's sandboxes are. On Fargate in an account; in an emulator, which has no network to a sandbox, drivers
 * make their own, and then there are no images to build, no service to wake and no account to ask.
 */
export const SandboxesText = z.enum(["fargate", "bubblewrap"]);

export const Run = z.string().min(1);
export const Iteration = z.int().nonnegative();

/** A phase prefix, as plan returned it. */
export const Phase = z
  .string()
  .refine((text): text is PhasePrefix => isPhase(text), "expected the prefix of a phase");

function isPhase(text: string): boolean {
  try {
    parsePhase(text);
    return true;
  } catch {
    return false;
  }
}
