// Compares the interpreter with executions recorded on AWS: the whole history, event by event. docs/local-runner.md has
// the counts that this file prints.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { TaskExecutor } from "../../src/asl/executor.ts";
import { isJsonObject, type Json } from "../../src/asl/json-value.ts";
import { openRunner } from "../../src/asl/runner.ts";
import { StateError } from "../../src/asl/state-error.ts";
import { openStore } from "../../src/store/open-store.ts";
import {
  MISSING_RECORDINGS,
  normalise,
  type RecordedEvent,
  readDefinition,
  readRecorded,
} from "./recorded.ts";
import { CASES, type RecordedCase, TRANSLATED } from "./recorded-cases.ts";
import { translate } from "./translate.ts";
import { VirtualClock } from "./virtual-clock.ts";

describe.skipIf(MISSING_RECORDINGS !== undefined)(
  `recorded executions${MISSING_RECORDINGS ? ` (skipped: ${MISSING_RECORDINGS})` : ""}`,
  () => {
    it.each(rows(CASES))("JSONata: %s", (_, row) =>
      compare(row, change => ({ ...change, QueryLanguage: "JSONata" })),
    );
    it.each(rows(TRANSLATED))("JSONPath, translated: %s", (_, row) => compare(row, translate));
  },
);

/** Histories, of which a recorded test may have several. */
let compared = 0;
afterAll(() => {
  if (compared > 0) process.stdout.write(`${compared} recorded histories compared\n`);
});

function rows(cases: readonly RecordedCase[]) {
  return cases.map(row => [`${row.file} ${row.test}`, row] as const);
}

/** @param toJsonata changes the query language; states that read no path mean the same in both */
async function compare(
  row: RecordedCase,
  toJsonata: (definition: Record<string, Json>) => Record<string, Json>,
): Promise<void> {
  if (row.refused !== undefined) {
    await expect(openRunner({ machines: { recorded: readDefinition(row.definition) } })).rejects.toThrow(
      row.refused,
    );
    return;
  }
  const changed = readDefinition(row.definition);
  row.change?.(changed);
  let text = JSON.stringify(toJsonata(changed));
  for (const [from, to] of row.replace ?? []) text = text.replaceAll(from, to);
  const machines = Object.fromEntries(
    Object.entries(row.machines ?? {}).map(([name, path]) => [name, translate(readDefinition(path))]),
  );
  const recorded = readRecorded(row.file, row.test);
  expect(recorded.length).toBeGreaterThan(0);
  for (const history of recorded) {
    compared++;
    const ours = normalise(await replay({ ...machines, recorded: text }, row.input ?? inputOf(history), row));
    const theirs = normalise(
      withInput(row.exitPointsToRunEnd === true ? pointToRunStart(history) : history, row.input),
    );
    if (row.differs === undefined) expect(ours).toEqual(theirs);
    else expect(ours).not.toEqual(theirs);
  }
}

function pointToRunStart(history: readonly RecordedEvent[]): RecordedEvent[] {
  const idOf = (type: string) => history.find(event => event.type === type)?.id;
  return history.map(event =>
    event.type === "MapStateExited" && event.previousEventId === idOf("MapRunSucceeded")
      ? { ...event, previousEventId: Number(idOf("MapRunStarted")) }
      : event,
  );
}

function inputOf([started]: readonly RecordedEvent[]): Json {
  const input = (started.executionStartedEventDetails as { input: Json }).input;
  return typeof input === "string" ? JSON.parse(input) : input;
}

/** Puts back an input that the recording hides because of its dates. */
function withInput(history: readonly RecordedEvent[], input: Json | undefined): RecordedEvent[] {
  if (!isJsonObject(input)) return [...history];
  const hidden = JSON.stringify(inputOf(history));
  const shown = JSON.stringify(input);
  return JSON.parse(JSON.stringify(history).replaceAll(hidden, shown));
}

async function replay(machines: Record<string, Json>, input: Json, { lambda }: RecordedCase) {
  const needsBucket = JSON.stringify([machines, input]).includes("result-bucket");
  const folder = needsBucket ? await mkdtemp(join(tmpdir(), "t1-recorded-")) : undefined;
  const bucket = folder === undefined ? undefined : await openStore(folder);
  const runner = await openRunner({
    machines,
    executors: {
      "lambda:invoke": lambda === "raise" ? raise() : LAMBDAS[lambda ?? "echo"],
    },
    buckets: bucket === undefined ? {} : { "result-bucket": bucket },
    clock: new VirtualClock(),
    seed: "recorded",
    account: "111111111111",
  });
  try {
    const { executionArn } = await runner.run({ machine: "recorded", input });
    return runner.history(executionArn);
  } finally {
    await runner.close();
    if (folder !== undefined) await rm(folder, { recursive: true });
  }
}

/** The recorded function returned its input. */
const echo: TaskExecutor = async ({ arguments: { Payload: payload = null } }) => ({
  ExecutedVersion: "$LATEST",
  Payload: payload,
  StatusCode: 200,
});

const LAMBDAS: Readonly<Record<"echo" | "hang" | "large", TaskExecutor>> = {
  echo,
  hang: async (_, { sleep }) => {
    await sleep(1e9);
    return {};
  },
  large: async () => ({ Payload: "\u{1f4a5}".repeat(70_000) }),
};

/** The recorded function raised a Python exception; the suite numbers its request ids. */
function raise(): TaskExecutor {
  let count = 0;
  return async () => {
    count++;
    throw new StateError(
      "Exception",
      JSON.stringify({
        errorMessage: "Some exception was raised.",
        errorType: "Exception",
        requestId: `<uuid:${count}>`,
        stackTrace: [
          '  File "/var/task/handler.py", line 2, in handler\n    raise Exception("Some exception was raised.")\n',
        ],
      }),
    );
  };
}
