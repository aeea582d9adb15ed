// The executor of `states:startExecution`: starts another execution of this runner. Like the two versions of the
// integration, `.sync` responds with texts and `.sync:2` with JSON.
import { z } from "zod";
import { InputError } from "../../failure/errors.ts";
import { deriveSeed } from "../../random/seed.ts";
import type { ExecutionDescription } from "../description.ts";
import type { TaskExecutor } from "../executor.ts";
import type { Json, JsonObject } from "../json-value.ts";
import { StateError } from "../state-error.ts";

/** The part of a runner that this executor calls. */
interface Starter {
  startExecution(options: {
    readonly machine: string;
    readonly input: Json;
    readonly name: string;
    readonly startedBy: string;
  }): { readonly executionArn: string };
  result(executionArn: string): Promise<ExecutionDescription>;
  stopExecution(executionArn: string, reason: { readonly error?: string; readonly cause?: string }): void;
}

const Arguments = z.looseObject({
  StateMachineArn: z.string(),
  Name: z.string().nullish(),
  Input: z.custom<Json>().optional(),
});

export function statesExecutor(runner: Starter): TaskExecutor {
  return async (request, context) => {
    const parsed = Arguments.safeParse(request.arguments);
    if (!parsed.success) throw new StateError("States.Runtime", z.prettifyError(parsed.error));
    const { StateMachineArn: machineArn, Name: name, Input: input } = parsed.data;
    const started = start(runner, {
      machine: machineArn.slice(machineArn.lastIndexOf(":") + 1),
      // A text is taken as JSON.
      input: typeof input === "string" ? parseInput(input) : (input ?? {}),
      // A try that is repeated after a restart finds the execution that it had started.
      name: name ?? deriveSeed(request.requestId, "execution"),
      startedBy: request.requestId,
    });
    const response = {
      ExecutionArn: started.executionArn,
      SdkHttpMetadata: { HttpStatusCode: 200 },
      SdkResponseMetadata: { RequestId: request.requestId },
      StartDate: context.now(),
    };
    const { pattern } = request.resource;
    if (pattern !== "sync" && pattern !== "sync:2") return response;
    context.submitted(response);
    // Step Functions stops the execution that a `.sync` task started when the task itself ends.
    context.signal.addEventListener("abort", () =>
      runner.stopExecution(started.executionArn, { cause: "Parent execution ended" }),
    );
    const ended = await context.idle(runner.result(started.executionArn));
    const description = describe(ended, pattern === "sync:2");
    if (ended.status !== "SUCCEEDED") throw new StateError("States.TaskFailed", JSON.stringify(description));
    return description;
  };
}

function start(
  runner: Starter,
  options: Parameters<Starter["startExecution"]>[0],
): { readonly executionArn: string } {
  try {
    return runner.startExecution(options);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    throw new StateError(
      error.message.startsWith("no such machine")
        ? "StepFunctions.StateMachineDoesNotExistException"
        : "StepFunctions.ExecutionAlreadyExistsException",
      error.message,
    );
  }
}

function parseInput(text: string): Json {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new StateError("States.Runtime", `Input is no JSON: ${String(error)}`);
  }
}

function describe(execution: ExecutionDescription, isParsed: boolean): JsonObject {
  const value = (text: string): Json => (isParsed ? JSON.parse(text) : text);
  return {
    Cause: execution.cause,
    // The nested description names a time-out, unlike DescribeExecution (recorded on AWS).
    Error: execution.status === "TIMED_OUT" ? "States.Timeout" : execution.error,
    ExecutionArn: execution.executionArn,
    Input: value(execution.input),
    InputDetails: { Included: true },
    Name: execution.name,
    ...(execution.output !== undefined && {
      Output: value(execution.output),
      OutputDetails: { Included: true },
    }),
    RedriveCount: 0,
    RedriveStatus: execution.status === "SUCCEEDED" ? "NOT_REDRIVABLE" : "REDRIVABLE",
    StartDate: Date.parse(execution.startDate),
    StateMachineArn: execution.stateMachineArn,
    Status: execution.status,
    StopDate: execution.stopDate === undefined ? undefined : Date.parse(execution.stopDate),
  };
}
