// The interpreter against executions recorded on AWS: the whole history, event by event. docs/local-runner.md has the
// counts that this file prints.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { TaskExecutor } from "../../src/local/executor.ts";
import { isJsonObject, type Json } from "../../src/local/json-value.ts";
import { openRunner } from "../../src/local/runner.ts";
import { StateError } from "../../src/local/state-error.ts";
import { VirtualClock } from "../../src/local/virtual-clock.ts";
import { openStore } from "../../src/store/open-store.ts";
import {
  MISSING_RECORDINGS,
  normalise,
  type RecordedEvent,
  readDefinition,
  readRecorded,
} from "./recorded.ts";
import { CASES, type RecordedCase } from "./recorded-cases.ts";

describe.skipIf(MISSING_RECORDINGS !== undefined)(
  `recorded executions${MISSING_RECORDINGS ? ` (${MISSING_RECORDINGS})` : ""}`,
  () => {
    it.each(CASES.map(row => [`${row.file} ${row.test}`, row] as const))("%s", async (_, row) => {
      if (row.refused !== undefined) {
        await expect(openRunner({ machines: { recorded: readDefinition(row.definition) } })).rejects.toThrow(
          row.refused,
        );
        return;
      }
      const definition = definitionOf(row);
      const recorded = readRecorded(row.file, row.test);
      expect(recorded.length).toBeGreaterThan(0);
      for (const history of recorded) {
        const ours = normalise(await replay(definition, row.input ?? inputOf(history), row.lambda));
        const theirs = normalise(withInput(history, row.input));
        if (row.differs === undefined) expect(ours).toEqual(theirs);
        else expect(ours).not.toEqual(theirs);
      }
    });
  },
);

function definitionOf({ definition: path, change, replace = [] }: RecordedCase): Record<string, Json> {
  const definition = readDefinition(path);
  change?.(definition);
  // States that read no path mean the same in both languages; only their name for it is changed.
  let text = JSON.stringify({ ...definition, QueryLanguage: "JSONata" });
  for (const [from, to] of replace) text = text.replaceAll(from, to);
  return JSON.parse(text);
}

function inputOf([started]: readonly RecordedEvent[]): Json {
  const input = (started.executionStartedEventDetails as { input: Json }).input;
  return typeof input === "string" ? JSON.parse(input) : input;
}

/** The recording hides dates in inputs; what it shows of them elsewhere is kept. */
function withInput(history: readonly RecordedEvent[], input: Json | undefined): RecordedEvent[] {
  if (!isJsonObject(input)) return [...history];
  const hidden = JSON.stringify(inputOf(history));
  const shown = JSON.stringify(input);
  return JSON.parse(JSON.stringify(history).replaceAll(hidden, shown));
}

async function replay(definition: Json, input: Json, lambda: RecordedCase["lambda"]) {
  const needsBucket = JSON.stringify(input).includes("bucket-name");
  const folder = needsBucket ? await mkdtemp(join(tmpdir(), "t1-recorded-")) : undefined;
  const bucket = folder === undefined ? undefined : await openStore(folder);
  await bucket?.put("file.json", JSON.stringify(STATEMENTS), { ifNoneMatch: "*" });
  const runner = await openRunner({
    machines: { recorded: definition },
    executors: { "lambda:invoke": lambda === "raise" ? raise() : echo },
    buckets: bucket === undefined ? {} : { "bucket-name": bucket },
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

const STATEMENTS = [
  { verdict: "true", statement_date: "6/11/2008", statement_source: "speech" },
  { verdict: "false", statement_date: "6/7/2022", statement_source: "television" },
  { verdict: "mostly-true", statement_date: "5/18/2016", statement_source: "news" },
];

/** The recorded function returned its input. */
const echo: TaskExecutor = async ({ arguments: { Payload: payload = null } }) => ({
  ExecutedVersion: "$LATEST",
  Payload: payload,
  StatusCode: 200,
});

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
