// Refusals when a machine is loaded, items read from S3 and results written to it, machines out of a template.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readLines } from "../../src/asl/item-reader.ts";
import type { Json } from "../../src/asl/json-value.ts";
import { loadDefinition } from "../../src/asl/load-definition.ts";
import { retryDelayMs } from "../../src/asl/retry.ts";
import { readMachines } from "../../src/asl/synthesized.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import type { ObjectStore } from "../../src/store/object-store.ts";
import { openStore } from "../../src/store/open-store.ts";
import { call, detailsOf, machineOf, runMachine } from "./run-machine.ts";

const end = { Type: "Pass", End: true };
const map = (fields: Record<string, Json>, processor: Record<string, Json> = {}) => ({
  Type: "Map",
  ItemProcessor: {
    ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
    StartAt: "In",
    States: { In: end },
    ...processor,
  },
  End: true,
  ...fields,
});
const reader = (config: Record<string, Json>) => ({
  Resource: "arn:aws:states:::s3:getObject",
  Arguments: { Bucket: "b", Key: "k" },
  ReaderConfig: config,
});

describe("loading", () => {
  it.each<[string, Json, RegExp]>([
    [
      "a JSONPath machine",
      { StartAt: "A", States: { A: end } },
      /not supported: QueryLanguage JSONPath: machine m: state "A": States\.A/,
    ],
    [
      "InputPath",
      machineOf({ A: { ...end, InputPath: "$" } }),
      /not supported: InputPath \(JSONPath\): machine m: state "A": States\.A\.InputPath/,
    ],
    ["ResultPath", machineOf({ A: { ...call(), ResultPath: "$.x" } }), /not supported: ResultPath/],
    [
      "Variable in a Choice",
      machineOf({ A: { Type: "Choice", Choices: [{ Variable: "$.x", Next: "B" }] }, B: end }),
      /state "A": States\.A\.Choices\[0\]\.Variable/,
    ],
    [
      "ItemBatcher",
      machineOf({ A: map({ ItemBatcher: { MaxItemsPerBatch: 2 } }) }),
      /not supported: ItemBatcher: machine m: state "A": States\.A\.ItemBatcher/,
    ],
    [
      "CSV",
      machineOf({ A: map({ ItemReader: reader({ InputType: "CSV" }) }) }),
      /not supported: InputType CSV: .*ItemReader\.ReaderConfig\.InputType/,
    ],
    [
      "inventories",
      machineOf({ A: map({ ItemReader: reader({ InputType: "MANIFEST" }) }) }),
      /not supported: InputType MANIFEST/,
    ],
    [
      "JSON",
      machineOf({ A: map({ ItemReader: reader({ InputType: "JSON" }) }) }),
      /not supported: InputType JSON:/,
    ],
    [
      "MaxItems",
      machineOf({ A: map({ ItemReader: reader({ InputType: "JSONL", MaxItems: 3 }) }) }),
      /not supported: MaxItems: .*ItemReader\.ReaderConfig\.MaxItems/,
    ],
    [
      "lists of objects",
      machineOf({
        A: map({ ItemReader: { Resource: "arn:aws:states:::s3:listObjectsV2", Arguments: { Bucket: "b" } } }),
      }),
      /not supported: items from a list of objects: .*ItemReader\.Resource/,
    ],
    [
      "WriterConfig",
      machineOf({ A: map({ ResultWriter: { WriterConfig: { OutputType: "JSONL" } } }) }),
      /not supported: WriterConfig: .*ResultWriter\.WriterConfig/,
    ],
    [
      "inline Maps",
      machineOf({ A: map({}, { ProcessorConfig: { Mode: "INLINE" } }) }),
      /not supported: inline Map: machine m: state "A": States\.A\.ItemProcessor\.ProcessorConfig/,
    ],
    [
      "Maps that are inline by default",
      machineOf({ A: { Type: "Map", ItemProcessor: { StartAt: "In", States: { In: end } }, End: true } }),
      /not supported: inline Map/,
    ],
    [
      "task tokens",
      machineOf({ A: call({ Resource: "arn:aws:states:::lambda:invoke.waitForTaskToken" }) }),
      /not supported: \.waitForTaskToken: machine m: state "A": States\.A\.Resource/,
    ],
    [
      "heartbeats",
      machineOf({ A: call({ HeartbeatSeconds: 10 }) }),
      /not supported: HeartbeatSeconds: .*States\.A\.HeartbeatSeconds/,
    ],
    [
      "tasks that nobody waits for",
      machineOf({ A: call({ Resource: "arn:aws:states:::ecs:runTask" }) }),
      /not supported: ecs:runTask without \.sync/,
    ],
    [
      "a function's ARN",
      machineOf({ A: call({ Resource: "arn:aws:lambda:us-east-1:1:function:x" }) }),
      /not supported: a function's ARN as Resource/,
    ],
    [
      "a Timestamp",
      machineOf({ A: { Type: "Wait", Timestamp: "2026-01-01T00:00:00Z", End: true } }),
      /not supported: Timestamp/,
    ],
    [
      "Express children",
      machineOf({ A: map({}, { ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "EXPRESS" } }) }),
      /not supported: ExecutionType EXPRESS/,
    ],
    [
      "activities",
      machineOf({ A: call({ Resource: "arn:aws:states:us-east-1:1:activity:x" }) }),
      /not supported: activities/,
    ],
    ["Credentials", machineOf({ A: call({ Credentials: {} }) }), /not supported: Credentials/],
    ["an unknown field", machineOf({ A: { ...end, Nxet: "B" } }), /machine m: state "A": States\.A.*Nxet/],
    [
      "an unknown type",
      machineOf({ A: { Type: "Pas", End: true } }),
      /machine m: state "A": States\.A\.Type/,
    ],
    [
      "a missing target",
      machineOf({ A: { Type: "Pass", Next: "B" } }),
      /missing state: machine m: state "A": States\.A\.Next: expected one of A, got "B"/,
    ],
    [
      "a catcher to nowhere, deep inside",
      machineOf({
        P: {
          Type: "Parallel",
          Branches: [{ StartAt: "A", States: { A: call({ Catch: [{ ErrorEquals: ["X"], Next: "Z" }] }) } }],
          End: true,
        },
      }),
      /state "A": States\.P\.Branches\[0\]\.States\.A\.Catch\[0\]\.Next/,
    ],
    ["neither Next nor End", machineOf({ A: { Type: "Pass" } }), /invalid transition: machine m: state "A"/],
    [
      "JSONata that does not parse",
      machineOf({ A: { ...end, Output: { x: "{% 1 + %}" } } }),
      /invalid JSONata: machine m: state "A": States\.A\.Output\.x/,
    ],
    [
      "a name in two scopes",
      machineOf({ A: { Type: "Parallel", Branches: [{ StartAt: "A", States: { A: end } }], End: true } }),
      /state name used twice/,
    ],
    [
      "a variable in two scopes",
      machineOf({
        S: { Type: "Pass", Assign: { v: 1 }, Next: "P" },
        P: {
          Type: "Parallel",
          Branches: [{ StartAt: "I", States: { I: { ...end, Assign: { v: 2 } } } }],
          End: true,
        },
      }),
      /variable assigned in two scopes/,
    ],
    ["a label with a space", machineOf({ A: map({ Label: "a b" }) }), /state "A": States\.A\.Label/],
    ["a label of 41 characters", machineOf({ A: map({ Label: "x".repeat(41) }) }), /at most 40 characters/],
    [
      "a fractional retry",
      machineOf({ A: call({ Retry: [{ ErrorEquals: ["X"], MaxAttempts: 1.5 }] }) }),
      /States\.A\.Retry\[0\]\.MaxAttempts/,
    ],
    [
      "a string for seconds",
      machineOf({ A: { Type: "Wait", Seconds: "5", End: true } }),
      /States\.A\.Seconds: expected a whole number of seconds or a JSONata string/,
    ],
    [
      "an empty ResultWriter",
      machineOf({ A: map({ ResultWriter: {} }) }),
      /States\.A\.ResultWriter\.Resource/,
    ],
  ])("refuses %s, with the state and the path", (_, definition, message) => {
    expect(() => loadDefinition("m", definition)).toThrow(message);
  });

  it("takes a key that looks like JSONPath as the key it is", async () => {
    const { output } = await runMachine(machineOf({ A: { ...end, Output: { "a.$": "$.x" } } }));
    expect(output).toEqual({ "a.$": "$.x" });
  });
});

describe("retry delays", () => {
  it("grow by the rate up to the maximum, and jitter only shortens them", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1000 }),
        fc.double({ min: 1, max: 5, noNaN: true }),
        fc.option(fc.integer({ min: 1, max: 5000 }), { nil: undefined }),
        fc.integer({ min: 1, max: 12 }),
        fc.string(),
        (intervalSeconds, backoffRate, maxDelaySeconds, retryNumber, seed) => {
          const retrier = {
            errorEquals: ["X"],
            intervalSeconds,
            maxAttempts: 99,
            backoffRate,
            maxDelaySeconds,
          };
          const random = () => new RandomStream(deriveSeed(seed));
          const full = retryDelayMs({ ...retrier, jitter: "NONE" }, retryNumber, random());
          expect(full).toBeCloseTo(
            1000 *
              Math.min(
                intervalSeconds * backoffRate ** (retryNumber - 1),
                maxDelaySeconds ?? Infinity,
                99_999_999,
              ),
            3,
          );
          expect(
            retryDelayMs({ ...retrier, jitter: "NONE" }, retryNumber + 1, random()),
          ).toBeGreaterThanOrEqual(full);
          const jittered = retryDelayMs({ ...retrier, jitter: "FULL" }, retryNumber, random());
          expect(jittered).toBeGreaterThanOrEqual(0);
          expect(jittered).toBeLessThan(full);
        },
      ),
    );
  });
});

describe("lines", () => {
  it("are the same however the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: "grapheme" }).filter(text => !/[\r\n\ufeff]/.test(text) && text !== "")),
        fc.constantFrom("\n", "\r\n"),
        fc.boolean(),
        fc.array(fc.nat(40)),
        async (lines, ending, hasLastEnding, cuts) => {
          const bytes = Buffer.from(lines.join(ending) + (hasLastEnding && lines.length > 0 ? ending : ""));
          const chunks = async function* () {
            let at = 0;
            for (const cut of cuts) {
              yield bytes.subarray(at, at + cut);
              at += cut;
            }
            yield bytes.subarray(at);
          };
          expect(await Array.fromAsync(readLines(chunks()))).toEqual(lines);
        },
      ),
    );
  });
});

describe("items from S3 and results in it", () => {
  const withStore = async (run: (store: ObjectStore) => Promise<void>) => {
    const folder = mkdtempSync(join(tmpdir(), "t1-items-"));
    try {
      await run(await openStore(folder));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const reading = (ReaderConfig: Record<string, Json>, rest: Record<string, Json> = {}) =>
    machineOf({ Map: map({ ItemReader: reader(ReaderConfig), ...rest }) });
  const put = (store: ObjectStore, text: string | Uint8Array) => store.put("k", text, { ifNoneMatch: "*" });

  it("reads JSON lines, and says MapStateStarted before it knows how many", async () => {
    await withStore(async store => {
      await put(store, '{"a":1}\n"two"\r\n\n3');
      const { output, events } = await runMachine(reading({ InputType: "JSONL" }), {
        buckets: { b: store },
      });
      expect(output).toEqual([{ a: 1 }, "two", 3]);
      expect(detailsOf(events, "MapStateStarted")).toEqual([{ length: 0 }]);
    });
  });

  it.each([
    ["a missing object", undefined, /no such object/],
    ["a line that is no JSON", '{"a":1}\n{oops\n', /line 2 of k is no JSON/],
    ["bytes that are no text", new Uint8Array([0x22, 0xff, 0x22, 0x0a]), /not UTF-8/],
    ["an item that no state could take", `"${"x".repeat(300_000)}"\n`, /size of item 0/],
  ])("fails with States.ItemReaderFailed for %s", async (_, content, message) => {
    await withStore(async store => {
      if (content !== undefined) await put(store, content);
      const { description, types } = await runMachine(reading({ InputType: "JSONL" }), {
        buckets: { b: store },
      });
      expect(description).toMatchObject({
        error: "States.ItemReaderFailed",
        cause: expect.stringMatching(message),
      });
      expect(types.slice(-3)).toEqual(["MapRunFailed", "MapStateFailed", "ExecutionFailed"]);
    });
  });

  it("leaves a manifest and files by status, and points to it (localstack PR#11381, floci PR#1823)", async () => {
    await withStore(async store => {
      const definition = machineOf({
        Map: map(
          {
            Items: [[1, 2], [3], "bad"],
            ToleratedFailureCount: 1,
            ResultWriter: {
              Resource: "arn:aws:states:::s3:putObject",
              Arguments: { Bucket: "b", Prefix: "results/" },
            },
          },
          {
            StartAt: "In",
            States: {
              In: {
                Type: "Choice",
                Choices: [{ Condition: "{% $states.input = 'bad' %}", Next: "Bad" }],
                Default: "Good",
              },
              Bad: { Type: "Fail", Error: "Bad", Cause: "why" },
              Good: end,
            },
          },
        ),
      });
      const { output } = await runMachine(definition, { buckets: { b: store } });
      const { MapRunArn: arn, ResultWriterDetails: place } = output as {
        MapRunArn: string;
        ResultWriterDetails: { Bucket: string; Key: string };
      };
      const read = async (key: string) => Buffer.from((await store.get(key))?.body ?? []).toString();
      expect(place).toEqual({ Bucket: "b", Key: `results/${arn.split(":").at(-1)}/manifest.json` });
      const manifest = JSON.parse(await read(place.Key));
      expect(manifest).toMatchObject({
        DestinationBucket: "b",
        MapRunArn: arn,
        ResultFiles: { PENDING: [] },
      });
      const succeeded = await read(manifest.ResultFiles.SUCCEEDED[0].Key);
      expect(manifest.ResultFiles.SUCCEEDED[0]).toEqual({
        Key: place.Key.replace("manifest", "SUCCEEDED_0"),
        Size: Buffer.byteLength(succeeded),
      });
      expect(JSON.parse(succeeded)).toMatchObject([
        { Status: "SUCCEEDED", Input: "[1,2]", Output: "[1,2]", OutputDetails: { Included: true } },
        { Output: "[3]" },
      ]);
      expect(JSON.parse(await read(manifest.ResultFiles.FAILED[0].Key))).toMatchObject([
        { Status: "FAILED", Error: "Bad", Cause: "why", Input: '"bad"' },
      ]);
    });
  });

  it("fails with States.ResultWriterFailed for a bucket that is not there", async () => {
    const { description } = await runMachine(
      machineOf({
        Map: map({
          Items: [1],
          ResultWriter: { Resource: "arn:aws:states:::s3:putObject", Arguments: { Bucket: "none" } },
        }),
      }),
    );
    expect(description.error).toBe("States.ResultWriterFailed");
  });
});

describe("machines out of a template", () => {
  const template = (definition: Json) => ({
    Resources: {
      Bucket: { Type: "AWS::S3::Bucket" },
      Machine: {
        Type: "AWS::StepFunctions::StateMachine",
        Properties: { StateMachineName: "iterate", DefinitionString: definition },
      },
    },
  });

  it("are the definitions with every reference answered", async () => {
    const text = JSON.stringify(
      machineOf({ A: { Type: "Pass", Output: { bucket: "@@", arn: "@@", sub: "@@" }, End: true } }),
    ).split('"@@"');
    const machines = readMachines(
      template({
        "Fn::Join": [
          "",
          [
            text[0],
            '"',
            { Ref: "Bucket" },
            '"',
            text[1],
            '"',
            { "Fn::GetAtt": ["Function", "Arn"] },
            '"',
            text[2],
            '"',
            // biome-ignore lint/suspicious/noTemplateCurlyInString: CloudFormation's own placeholders
            { "Fn::Sub": "${AWS::Region}/${!kept}" },
            '"',
            text[3],
          ],
        ],
      } as Json),
      "cdk.out/x.template.json",
      { Bucket: "data", "Function.Arn": "arn:aws:lambda:us-east-1:1:function:score" },
    );
    const { output } = await runMachine(JSON.parse(machines.iterate));
    expect(output).toEqual({
      bucket: "data",
      arn: "arn:aws:lambda:us-east-1:1:function:score",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: what Fn::Sub leaves of an escaped one
      sub: "us-east-1/${kept}",
    });
  });

  it("refuses a reference that nothing answers", () => {
    expect(() =>
      readMachines(template({ "Fn::Join": ["", ["{", { Ref: "Queue" }, "}"]] }), "x.json", {}),
    ).toThrow(/unresolved reference: x\.json: Machine: .*Queue/);
    expect(() => readMachines(template({ "Fn::Select": [0, "x"] }), "x.json", {})).toThrow(
      "not supported in a definition",
    );
  });
});
