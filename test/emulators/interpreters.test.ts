// The deployed definitions in the emulator's interpreter and in ours, side by side: the same answers of the same tasks
// have to lead through the same states to the same end.

import { setTimeout as sleep } from "node:timers/promises";
import { CloudFormationClient, DescribeStacksCommand } from "@aws-sdk/client-cloudformation";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import {
  CreateStateMachineCommand,
  DescribeExecutionCommand,
  DescribeMapRunCommand,
  DescribeStateMachineCommand,
  GetExecutionHistoryCommand,
  ListMapRunsCommand,
  SFNClient,
  StartExecutionCommand,
} from "@aws-sdk/client-sfn";
import { beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/store/open-store.ts";
import { definitionsOf } from "../infra/deployed-templates.ts";
import { synthesize } from "../infra/synthesized.ts";
import { can, endpoint, kind, missingFor } from "./at-hand.ts";
import { finished, type Ran, runHere } from "./our-interpreter.ts";
import { SCENARIOS, type Scenario, SHARDS, shardLines } from "./scenarios.ts";

const missing = missingFor("mocks");
const title = `ours and the interpreter of ${kind}${missing === undefined ? "" : ` (skipped: ${missing})`}`;

describe.skipIf(missing !== undefined)(title, { timeout: 120_000 }, () => {
  const states = new SFNClient({ endpoint });
  const arn = (machine: string): string => `arn:aws:states:us-east-1:000000000000:stateMachine:t1-${machine}`;
  const synthesized = synthesize();
  let bucket: string;

  beforeAll(async () => {
    bucket = can.includes("stacks") ? await deployedBucket() : await createMachines();
    const store = await openStore(`s3://${bucket}?endpoint=${encodeURIComponent(endpoint)}`);
    await store.put(SHARDS.key, shardLines(), { ifNoneMatch: "*" });
  }, 120_000);

  async function deployedBucket(): Promise<string> {
    const stacks = new CloudFormationClient({ endpoint });
    const { Stacks = [] } = await stacks.send(new DescribeStacksCommand({ StackName: "t1-pipeline" }));
    const url = Stacks[0]?.Outputs?.find(({ OutputKey }) => OutputKey === "StoreUrl")?.OutputValue ?? "";
    return url.replace("s3://", "");
  }

  /** The synthesized definitions with names that look like ARNs, for emulators that cannot deploy stacks. */
  async function createMachines(): Promise<string> {
    const name = "t1-store";
    await new S3Client({ endpoint, forcePathStyle: true }).send(new CreateBucketCommand({ Bucket: name }));
    const machines = definitionsOf(synthesized.templates);
    const { Bucket } = machines.iteration.States.Rollouts.ItemReader.Arguments;
    for (const [machine, definition] of Object.entries(machines))
      await states.send(
        new CreateStateMachineCommand({
          name: `t1-${machine}`,
          roleArn: "arn:aws:iam::000000000000:role/t1",
          definition: JSON.stringify(definition)
            .replaceAll(Bucket, name)
            .replaceAll("<AWS::Partition>", "aws")
            .replaceAll("<AWS::Region>", "us-east-1")
            .replaceAll("<AWS::AccountId>", "000000000000")
            .replaceAll(/<(\w+)\.Arn>/g, "arn:aws:lambda:us-east-1:000000000000:function:$1"),
        }),
      );
    return name;
  }

  const throwsStates = ({ answers }: Scenario): boolean =>
    JSON.stringify(answers).includes('"Error":"States.');
  it.for(Object.entries(SCENARIOS))("agree on %s", async ([name, scenario], { skip }) => {
    skip(
      throwsStates(scenario) && !can.includes("statesErrors"),
      "its mocks throw no names of Step Functions",
    );
    const { definition = "" } = await states.send(
      new DescribeStateMachineCommand({ stateMachineArn: arn(scenario.machine) }),
    );
    const ours = await runHere(definition, bucket, name, scenario);
    expect(ours).toMatchObject(scenario.ends);
    const theirs = await runThere(name, scenario, Object.keys(JSON.parse(definition).States));
    expect(theirs).toEqual(ours);
  });

  async function runThere(name: string, { machine, input }: Scenario, own: readonly string[]): Promise<Ran> {
    const { executionArn = "" } = await states.send(
      new StartExecutionCommand({
        stateMachineArn: `${arn(machine)}#${name}`,
        name,
        input: JSON.stringify(input),
      }),
    );
    let ended = await states.send(new DescribeExecutionCommand({ executionArn }));
    while (ended.status === "RUNNING") {
      await sleep(100);
      ended = await states.send(new DescribeExecutionCommand({ executionArn }));
    }
    const { events = [] } = await states.send(
      new GetExecutionHistoryCommand({ executionArn, maxResults: 1000 }),
    );
    const { mapRuns = [] } = await states.send(new ListMapRunsCommand({ executionArn }));
    const described = await Promise.all(
      mapRuns.map(({ mapRunArn }) => states.send(new DescribeMapRunCommand({ mapRunArn }))),
    );
    return {
      status: ended.status ?? "",
      // MiniStack gives failed executions an output too; AWS does not.
      ...(ended.status === "SUCCEEDED" && { output: JSON.parse(ended.output ?? "null") }),
      ...(ended.error !== undefined && { error: ended.error }),
      states: events.flatMap(({ stateEnteredEventDetails: entered }) =>
        entered?.name !== undefined && own.includes(entered.name) ? [entered.name] : [],
      ),
      maps: described
        .map(({ status = "", itemCounts: { succeeded = 0, failed = 0 } = {} }) => ({
          ended: status,
          succeeded,
          failed,
        }))
        .map(finished),
    };
  }
});
