// Measures our sandboxes beside the bare floors and beside other products, all in one run: start, command, terminal turn,
// sandboxes per minute, memory, real trials.
//
//   npm run bench:sandbox -- [--image IMAGE] [--swe-rex PYTHON] [--harbor PYTHON] [--seconds N] [--at-once N,…] [--json]
//                            [--tasks FOLDER [--images FILE] [--roots FOLDER] [--harbor-run COMMAND] [--rounds N]]
//
//   --image IMAGE      an image of the container engine with /bin/sh, sleep and, for Harbor, bash and tmux; without it
//                      the bench measures nothing of Docker
//   --swe-rex PYTHON   a command line of a Python that has swe-rex (pip install swe-rex aiohttp)
//   --harbor PYTHON    one that has harbor (pip install harbor), with docker and its compose plugin
//   --seconds N        of each figure of sandboxes per minute (6)
//   --at-once N,…      of these figures (1,8,32,128)
//
//   --tasks FOLDER     also real trials, of these tasks, whose docker_image is there and whose tests need no network
//   --images FILE      the images file for their images on bubblewrap (docs/images.md)
//   --roots FOLDER     for the plain script: root file systems of the images, by the task's name
//   --harbor-run COMMAND   a harbor program with its own arguments: "harbor run -p FOLDER"
//   --rounds N         how often each task is played (2)
import { parseArgs } from "node:util";
import { formatTable } from "../../src/cli/table.ts";
import type { Box, Contender } from "./contender.ts";
import { bareBubblewrap, bareContainers, dockerProgram, plainShell } from "./floors.ts";
import { cpuMs, memoryBelow, quantile, timeMs } from "./measure.ts";
import { timeOperations } from "./operations.ts";
import { ownBubblewrap, ownDocker } from "./own.ts";
import { harbor, sweRex } from "./python-boxes.ts";
import { trialsPerMinute } from "./trials.ts";

/** Warm-up rounds before the first that counts: a driver runs thousands, so its code is compiled by then. */
const WARM_UP = { rounds: 200, ms: 2_000 };
const COMMAND_ROUNDS = 200;
const START_ROUNDS = 25;
const COMMANDS_EACH = 20;
const MANY = 32;

const { values } = parseArgs({
  options: {
    image: { type: "string" },
    "swe-rex": { type: "string" },
    harbor: { type: "string" },
    seconds: { type: "string", default: "6" },
    "at-once": { type: "string", default: "1,8,32,128" },
    tasks: { type: "string" },
    images: { type: "string" },
    roots: { type: "string" },
    "harbor-run": { type: "string" },
    rounds: { type: "string", default: "2" },
    json: { type: "boolean", default: false },
  },
});
const { image } = values;
const AT_ONCE = values["at-once"].split(",").map(Number);
const contenders: readonly Contender[] = [
  plainShell(),
  bareBubblewrap(),
  ownBubblewrap(),
  ...(values["swe-rex"] === undefined ? [] : [sweRex(values["swe-rex"])]),
  ...(image === undefined
    ? []
    : [await bareContainers(image), await dockerProgram(image), await ownDocker(image)]),
  ...(image === undefined || values.harbor === undefined ? [] : [harbor(values.harbor, image)]),
];
const say = (text: string): void => void process.stderr.write(`${text}\n`);

interface Times {
  readonly p50: number;
  readonly p95: number;
}

function summary(times: readonly number[]): Times | undefined {
  return times.length === 0 ? undefined : { p50: quantile(times, 0.5), p95: quantile(times, 0.95) };
}

/** Measures contenders in turns, so other work of the host slows all of them alike. */
async function latencies() {
  const starts = new Map<Contender, number[]>(contenders.map(one => [one, []]));
  const commands = new Map<Contender, number[]>(contenders.map(one => [one, []]));
  const turns = new Map<Contender, number[]>(contenders.map(one => [one, []]));
  const boxes = new Map<Contender, Box>();
  for (const one of contenders) boxes.set(one, await one.create());
  for (const box of boxes.values()) {
    const until = performance.now() + WARM_UP.ms;
    for (let round = 0; round < WARM_UP.rounds && performance.now() < until; round++) await box.command();
  }
  // Each turn runs as many commands as an episode has. With single commands, each would mostly wait for the cleanup that
  // the contender before it left behind.
  for (let round = 0; round < COMMAND_ROUNDS; round += COMMANDS_EACH)
    for (const [one, { command, turn }] of boxes) {
      for (let index = 0; index < COMMANDS_EACH; index++) commands.get(one)?.push(await timeMs(command));
      if (turn === undefined) continue;
      for (let index = 0; index < COMMANDS_EACH; index++) turns.get(one)?.push(await timeMs(turn));
    }
  await Promise.all([...boxes.values()].map(box => box.stop()));
  for (let round = 0; round < START_ROUNDS; round++)
    for (const one of contenders) {
      let made: Box | undefined;
      starts.get(one)?.push(await timeMs(async () => (made = await one.create())));
      await made?.stop();
    }
  return contenders.map(one => ({
    name: one.name,
    start: summary(starts.get(one) ?? []),
    command: summary(commands.get(one) ?? []),
    turn: summary(turns.get(one) ?? []),
  }));
}

/** Starts a sandbox, runs commands and stops it, repeatedly by `atOnce` workers. */
async function perMinute(one: Contender, atOnce: number) {
  const until = performance.now() + 1000 * Number(values.seconds);
  const cpuBefore = cpuMs();
  let [done, failed] = [0, 0];
  const work = async (): Promise<void> => {
    do {
      try {
        const box = await one.create();
        for (let index = 0; index < COMMANDS_EACH; index++) await box.command();
        await box.stop();
        done++;
      } catch {
        failed++;
      }
    } while (performance.now() < until);
  };
  const ms = await timeMs(() => Promise.all(Array.from({ length: atOnce }, work)));
  const result = { perMinute: (done * 60_000) / ms, failed, cpuMsEach: (cpuMs() - cpuBefore) / done };
  say(`  ${one.name}, ${atOnce} at once: ${result.perMinute.toFixed(0)} per minute`);
  return { name: one.name, atOnce, ...result };
}

/** Memory of idle sandboxes that have run a command: all their processes and the growth of the driver's. */
async function memory(one: Contender) {
  // Only these contenders run all their processes below this one.
  if (one.kind !== "bubblewrap") return undefined;
  const measure = (): number => memoryBelow(process.pid) + process.memoryUsage().rss;
  await (await one.create()).stop();
  const before = measure();
  const boxes = await Promise.all(Array.from({ length: MANY }, () => one.create()));
  await Promise.all(boxes.map(box => box.command()));
  const bytesEach = (measure() - before) / MANY;
  await Promise.all(boxes.map(box => box.stop()));
  return { name: one.name, megabytesEach: bytesEach / 1e6 };
}

const showTable = (title: string, heads: readonly string[], rows: readonly (readonly string[])[]): void => {
  // Print each figure at once, so an abort before the last one does not lose the first ones.
  if (!values.json) process.stdout.write(`\n${title}\n${formatTable(heads, rows)}\n`);
};
const ms = (times: Times | undefined): string =>
  times === undefined ? "" : `${times.p50.toFixed(2)} / ${times.p95.toFixed(2)}`;

say("start, command and turn");
const alone = await latencies();
showTable(
  "ms, p50 / p95",
  ["", "start", "command", "terminal turn"],
  alone.map(({ name, start, command, turn }) => [name, ms(start), ms(command), ms(turn)]),
);

say("memory");
const memories: Awaited<ReturnType<typeof memory>>[] = [];
for (const one of contenders) memories.push(await memory(one));

say("sandboxes per minute");
const rates: Awaited<ReturnType<typeof perMinute>>[] = [];
for (const atOnce of AT_ONCE)
  for (const one of contenders) if (one.name !== "sh -c true") rates.push(await perMinute(one, atOnce));
const rate = (name: string, atOnce: number): string => {
  const found = rates.find(row => row.name === name && row.atOnce === atOnce);
  if (found === undefined) return "";
  return `${found.perMinute.toFixed(0)}${found.failed > 0 ? ` (${found.failed} failed)` : ""}`;
};
showTable(
  `sandboxes per minute (start, ${COMMANDS_EACH} commands, stop), by how many at once; MB each`,
  ["", ...AT_ONCE.map(String), "MB"],
  contenders
    .filter(({ name }) => name !== "sh -c true")
    .map(({ name }) => [
      name,
      ...AT_ONCE.map(atOnce => rate(name, atOnce)),
      memories.find(row => row?.name === name)?.megabytesEach.toFixed(2) ?? "",
    ]),
);

say("operations of a grading");
const operations = [...(await timeOperations(START_ROUNDS))].map(([what, times]) => ({
  what,
  ...summary(times),
}));
showTable(
  "t1 bubblewrap, operations of a grading, ms, p50 / p95",
  ["", "ms"],
  operations.map(row => [row.what, ms(row as Times)]),
);
for (const one of contenders) await one[Symbol.asyncDispose]();

let trials: Awaited<ReturnType<typeof trialsPerMinute>> | undefined;
if (values.tasks !== undefined) {
  say("trials per minute");
  trials = await trialsPerMinute(
    {
      ...{ tasks: values.tasks, images: values.images, roots: values.roots },
      ...{ harbor: values["harbor-run"], rounds: Number(values.rounds) },
      sandboxes: image === undefined ? ["bubblewrap"] : ["bubblewrap", "docker"],
    },
    say,
  );
  showTable("oracle trials per minute, by how many at once", trials.heads, trials.rows);
}
if (values.json) process.stdout.write(`${JSON.stringify({ alone, memories, rates, operations, trials })}\n`);
