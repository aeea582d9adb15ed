// Executions that LocalStack's test suite recorded on AWS, and the definitions they belong to. Neither is part of this
// repository: T1_FIXTURES is a folder with `stepfunctions/**/*.snapshot.json`, T1_SFN_DEFINITIONS the folder
// `tests/aws/services/stepfunctions/templates` of a checkout of localstack/localstack (Apache-2.0).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { HistoryEvent } from "../../src/asl/history.ts";
import type { Json } from "../../src/asl/json-value.ts";

const { T1_FIXTURES: fixtures, T1_SFN_DEFINITIONS: definitions } = process.env;

/** Why the recorded executions cannot be replayed, if they cannot. */
export const MISSING_RECORDINGS =
  fixtures === undefined
    ? "T1_FIXTURES is not set: no folder of recorded executions"
    : definitions === undefined
      ? "T1_SFN_DEFINITIONS is not set: no folder of LocalStack's definitions"
      : undefined;

const Event = z.looseObject({
  id: z.union([z.number(), z.array(z.number())]),
  previousEventId: z.number(),
  type: z.string(),
});
const Snapshot = z.record(
  z.string(),
  z.looseObject({ "recorded-content": z.record(z.string(), z.unknown()) }),
);
export type RecordedEvent = z.output<typeof Event>;

/** All histories of one recorded test, in their order. */
export function readRecorded(file: string, test: string): RecordedEvent[][] {
  const snapshot = Snapshot.parse(
    JSON.parse(readFileSync(join(fixtures ?? "", "stepfunctions", `${file}.snapshot.json`), "utf8")),
  );
  const key = Object.keys(snapshot).find(name => name.endsWith(`::${test}`));
  if (key === undefined) throw new Error(`no recorded test ${test} in ${file}`);
  return historiesIn(snapshot[key]["recorded-content"]);
}

export function historiesIn(content: unknown): RecordedEvent[][] {
  if (typeof content !== "object" || content === null) return [];
  if ("events" in content) return [z.array(Event).parse(content.events)];
  return Object.values(content).flatMap(historiesIn);
}

/** JSON5 as LocalStack's files use it: comments, and commas at the end of lists. */
export function readDefinition(path: string): Record<string, Json> {
  const text = readFileSync(join(definitions ?? "", `${path}.json5`), "utf8");
  const plain = text.replace(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (_, quoted) => quoted ?? "");
  return z.record(z.string(), z.custom<Json>()).parse(parseYaml(plain, { strict: false }));
}

/** What differs from run to run, or that LocalStack's suite does not compare either. */
const VOLATILE = new Set([
  "timestamp",
  "roleArn",
  "region",
  "inputDetails",
  "outputDetails",
  "assignedVariablesDetails",
  "SdkHttpMetadata",
  "SdkResponseMetadata",
  "StartDate",
  "StopDate",
  "RedriveCount",
  "RedriveStatus",
  "ExecutionArn",
  "StateMachineArn",
  "mapRunArn",
  "MapRunArn",
  "TaskToken",
  "MessageId",
  "MD5OfMessageBody",
]);

/** The same form for both sides: JSON texts parsed, volatile values left out, ARNs of functions shortened. */
export function normalise(events: readonly (RecordedEvent | HistoryEvent)[]): unknown[] {
  return sortParallel(events.map(event => plain(event) as Record<string, unknown>));
}

function plain(value: unknown): unknown {
  if (typeof value === "string") return plainText(value);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !VOLATILE.has(key))
      .map(([key, field]) => [key, plain(field)]),
  );
}

function plainText(text: string): unknown {
  if (/^[[{"]/.test(text))
    try {
      return plain(JSON.parse(text));
    } catch {
      // a text that only looks like JSON
    }
  return text
    .replace(/arn:[^:]*:lambda:[^:]*:\d+:function:[\w<>-]+/g, "FUNCTION")
    .replace(/<[^<>]*lambda[^<>]*>|lambda_function_name/g, "NAME")
    .replace(/mapJobs\/[^/]+\//, "mapJobs/RUN/");
}

/** As LocalStack records a Parallel: what its branches did, in an order of its own and without numbers. */
function sortParallel(events: Record<string, unknown>[]): unknown[] {
  const ended = new Set([
    "ParallelStateSucceeded",
    "ParallelStateAborted",
    "ParallelStateExited",
    "ParallelStateFailed",
  ]);
  let start = 0;
  let inside: Record<string, unknown>[] | undefined;
  let list = [...events];
  for (let index = 0; index < list.length; index++) {
    const event = list[index];
    if (ended.has(String(event.type))) {
      if (inside !== undefined) list = [...list.slice(0, start), ...sorted(inside), ...list.slice(index)];
      if (inside !== undefined && String(event.type) !== "ParallelStateExited") index = start + inside.length;
      if (event.type === "ParallelStateExited") inside = undefined;
    } else if (event.type === "ParallelStateStarted") {
      // A retried Parallel starts anew; what came before stays as it is.
      inside = [];
      start = index + 1;
    } else if (inside !== undefined) {
      inside.push({ ...event, id: [0], previousEventId: 0 });
      list[index] = { ...event, id: [0], previousEventId: 0 };
    }
  }
  // The recording lacks the event between the branches and the exit.
  return list.filter(({ type }) => type !== "ParallelStateSucceeded" && type !== "ParallelStateFailed");
}

function sorted(events: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  return events
    .map(event => [`${event.type} ${canonical(event)}`, event] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, event]) => event);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, field]) => `${key}:${canonical(field)}`).join()}}`;
}
