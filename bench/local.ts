// Measures the local runner: a Distributed Map of many items, each kind in a process of its own, and the overhead of one
// state beside the npm package aws-local-stepfunctions. The package is no dependency: T1_BENCH_PEERS is a folder in which
// somebody ran `npm install aws-local-stepfunctions@3.0.0`. Prints, asserts nothing.
//   npm run bench:local
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRunner } from "../src/asl/runner.ts";

const ITEMS = 10_000;
const STATES = 500;
const ROUNDS = 7;

function mapOf(items: number, state: object) {
  return {
    QueryLanguage: "JSONata",
    StartAt: "Map",
    States: {
      Map: {
        Type: "Map",
        Items: `{% [1..${items}] %}`,
        ItemProcessor: {
          ProcessorConfig: { Mode: "DISTRIBUTED", ExecutionType: "STANDARD" },
          StartAt: "NoOp",
          States: { NoOp: state },
        },
        Output: "{% $count($states.result) %}",
        End: true,
      },
    },
  };
}

/** A chain of `count` Pass states with an expression each. */
function chainOf(states: number, isJsonata: boolean) {
  const name = (index: number) => `S${index}`;
  return {
    ...(isJsonata && { QueryLanguage: "JSONata" }),
    StartAt: name(0),
    States: Object.fromEntries(
      Array.from({ length: states }, (_, index) => [
        name(index),
        {
          Type: "Pass",
          ...(isJsonata ? { Output: { n: "{% $states.input.n %}" } } : { Parameters: { "n.$": "$.n" } }),
          ...(index + 1 < states ? { Next: name(index + 1) } : { End: true }),
        },
      ]),
    ),
  };
}

/** Prints the time of the map alone, and the highest resident memory of the whole process. */
async function measureMap(name: string, state: object, folder: string | undefined): Promise<void> {
  const runner = await openRunner({
    machines: { main: JSON.stringify(mapOf(ITEMS, state)) },
    executors: { "lambda:invoke": async () => ({ Payload: null }) },
    folder,
  });
  const start = performance.now();
  const cpuStart = process.cpuUsage();
  const { status, output } = await runner.run({ machine: "main" });
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuStart);
  await runner.close();
  if (status !== "SUCCEEDED" || output !== String(ITEMS)) throw new Error(`${status} with ${output}`);
  const megabytes = process.resourceUsage().maxRSS / 1024;
  process.stdout.write(
    `${ITEMS} items, ${name}: ${seconds.toFixed(2)} s (CPU ${((user + system) / 1e6).toFixed(2)} s), ${((1e6 * seconds) / ITEMS).toFixed(0)} µs per item, peak ${megabytes.toFixed(0)} MB\n`,
  );
}

/** @returns microseconds per state */
async function ours(): Promise<number> {
  const runner = await openRunner({ machines: { main: JSON.stringify(chainOf(STATES, true)) } });
  const start = performance.now();
  const { output } = await runner.run({ machine: "main", input: { n: 7 } });
  const us = (1000 * (performance.now() - start)) / STATES;
  await runner.close();
  if (output !== '{"n":7}') throw new Error(`ours: ${output}`);
  return us;
}

interface Peer {
  readonly StateMachine: new (
    definition: object,
  ) => {
    run(input: object): { readonly result: Promise<unknown> };
  };
}

function loadPeer(): Peer | undefined {
  const { T1_BENCH_PEERS: folder } = process.env;
  if (folder === undefined) return undefined;
  return createRequire(join(folder, "package.json"))("aws-local-stepfunctions") as Peer;
}

/** The peer supports only JSONPath, so it runs the same chain in that language. @returns microseconds per state */
async function theirs({ StateMachine }: Peer): Promise<number> {
  const machine = new StateMachine(chainOf(STATES, false));
  const start = performance.now();
  const output = await machine.run({ n: 7 }).result;
  const us = (1000 * (performance.now() - start)) / STATES;
  if (JSON.stringify(output) !== '{"n":7}') throw new Error(`theirs: ${JSON.stringify(output)}`);
  return us;
}

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[values.length >> 1];
const spread = (values: readonly number[]) =>
  `${median(values).toFixed(0)} µs (${Math.min(...values).toFixed(0)}–${Math.max(...values).toFixed(0)})`;

const pass = { Type: "Pass", End: true };
const task = {
  Type: "Task",
  Resource: "arn:aws:states:::lambda:invoke",
  Arguments: { FunctionName: "noop", Payload: "{% $states.input %}" },
  Output: "{% $states.result.Payload %}",
  End: true,
};
const MAPS: Readonly<Record<string, { readonly state: object; readonly hasJournal: boolean }>> = {
  Pass: { state: pass, hasJournal: false },
  Task: { state: task, hasJournal: false },
  "Task, journal on disk": { state: task, hasJournal: true },
};

const [, self, chosen] = process.argv;
if (chosen !== undefined) {
  const { state, hasJournal } = MAPS[chosen];
  const folder = mkdtempSync(join(tmpdir(), "t1-bench-local-"));
  try {
    await measureMap(chosen, state, hasJournal ? folder : undefined);
  } finally {
    rmSync(folder, { recursive: true });
  }
} else {
  for (const name of Object.keys(MAPS)) spawnSync(process.execPath, [self, name], { stdio: "inherit" });
  const peer = loadPeer();
  const mine: number[] = [];
  const other: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    mine.push(await ours());
    if (peer !== undefined) other.push(await theirs(peer));
  }
  process.stdout.write(`one state with an expression: ${spread(mine)}\n`);
  process.stdout.write(
    peer === undefined
      ? "T1_BENCH_PEERS is not set: nothing to compare with\n"
      : `aws-local-stepfunctions (JSONPath): ${spread(other)}, ratio ${(median(other) / median(mine)).toFixed(2)}\n`,
  );
}
