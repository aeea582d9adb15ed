// Wait: some seconds from its entry, also over a restart, or until a point in time.
import type { WaitState } from "./machine.ts";
import { sleepUntil } from "./sleep.ts";
import { EvaluationError } from "./value-template.ts";
import { evaluateNumber, evaluateText, evaluationFailed, finish, type Outcome, type Visit } from "./visit.ts";

/** RFC 3339 with a capital T and an offset, as the language wants it. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

export async function runWait(visit: Visit & { readonly state: WaitState }): Promise<Outcome> {
  const { thread, state } = visit;
  await sleepUntil(thread.execution.world.clock, await wakeTime(visit), thread.cancellation);
  return finish(visit, state, visit.input);
}

async function wakeTime(visit: Visit & { readonly state: WaitState }): Promise<number> {
  const { kind, template } = visit.state.until;
  if (kind === "seconds")
    return visit.entered.timeMs + 1000 * (await evaluateNumber(visit, template, "Seconds"));
  const text = await evaluateText(visit, template, "Timestamp");
  const timeMs = TIMESTAMP.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(timeMs))
    throw evaluationFailed(
      visit,
      new EvaluationError(
        `The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time format string: ${text}`,
        "Timestamp",
      ),
      visit.entered.id,
    );
  return timeMs;
}
