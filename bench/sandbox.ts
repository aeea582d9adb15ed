// What a sandbox costs beside what it cannot cost less than: a plain `sh -c true`, started by Node, and a bare
// `bwrap … true`. The two sides of each ratio alternate in one run. CPU time is that of all processes together, from
// /proc/self/stat once they have ended. Usage: npx node bench/sandbox.ts [--json]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { createBubblewrapProvider } from "../src/sandbox/bubblewrap/provider.ts";
import type { Sandbox, SandboxProvider } from "../src/sandbox/sandbox.ts";

const ROUNDS = 60;
const MANY = 64;
const COMMANDS_EACH = 5;
const SPEC = {
  image: { kind: "host", files: [] },
  workdir: "/app",
  env: {},
  network: "none",
  diskBytes: 64 << 20,
} as const;
const SHELL = ["/bin/sh", "-c", "true"] as const;
const BARE = [
  ...["bwrap", "--unshare-all", "--uid", "0", "--gid", "0", "--tmpfs", "/", "--ro-bind", "/usr", "/usr"],
  ...["--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"],
  ...["--proc", "/proc", "--dev", "/dev", "/usr/bin/true"],
] as const;
/** sysconf(_SC_CLK_TCK), 100 on every Linux that Node runs on. */
const TICKS_PER_S = 100;

const { values } = parseArgs({ options: { json: { type: "boolean", default: false } } });
let count = 0;

/** As a program of this machine, with its output read and its end waited for. */
async function start([program = "", ...args]: readonly string[]): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.resume();
  child.stderr.resume();
  await once(child, "close");
}

function create(provider: SandboxProvider): Promise<Sandbox> {
  count += 1;
  return provider.create(SPEC, { id: `bench/${count}`, generation: 1, deadlineMs: Date.now() + 600_000 });
}

async function timeMs(action: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await action();
  return performance.now() - startedAt;
}

/** CPU of this process and of its children that have ended, theirs included. */
function cpuMs(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0); // 14 to 17 of proc_pid_stat(5)
  return (ticks * 1000) / TICKS_PER_S;
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

interface Row {
  readonly what: string;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly floor: string;
  readonly floorP50Ms: number;
  readonly ratio: number;
}

function row(what: string, times: readonly number[], floor: string, floorTimes: readonly number[]): Row {
  const [p50Ms, floorP50Ms] = [quantile(times, 0.5), quantile(floorTimes, 0.5)];
  return { what, p50Ms, p95Ms: quantile(times, 0.95), floor, floorP50Ms, ratio: p50Ms / floorP50Ms };
}

async function alone(): Promise<readonly Row[]> {
  const provider = await createBubblewrapProvider();
  const sandbox = await create(provider);
  const folder = new Uint8Array(1024); // an archive without entries
  await sandbox.upload(folder, "/tests");
  const actions: Readonly<Record<string, () => Promise<unknown>>> = {
    command: () => sandbox.exec("true", { timeoutMs: 60_000 }),
    kill: () => sandbox.killAgents(),
    upload: () => sandbox.upload(folder, "/tests"),
    download: () => sandbox.download("/tests", 1 << 20),
    changes: () => sandbox.changedFiles(),
  };
  const successors: Sandbox[] = [];
  const times = new Map<string, number[]>();
  const add = (name: string, ms: number): void => {
    times.set(name, [...(times.get(name) ?? []), ms]);
  };
  for (let round = 0; round < ROUNDS; round++) {
    add("sh", await timeMs(() => start(SHELL)));
    for (const [name, action] of Object.entries(actions)) add(name, await timeMs(action));
    add("bwrap", await timeMs(() => start(BARE)));
    let made: Sandbox | undefined;
    add(
      "create",
      await timeMs(async () => {
        made = await create(provider);
      }),
    );
    // As in a grading: what was changed, and a clean sandbox with it.
    add(
      "list and carry",
      await timeMs(async () => {
        await made?.killAgents();
        await made?.changedFiles();
        count += 1;
        const lease = { id: `bench/${count}`, generation: 1, deadlineMs: Date.now() + 600_000 };
        const next = await made?.successor(lease, { without: ["/tests", "/logs/verifier"] });
        if (next !== undefined && !("refused" in next)) successors.push(next);
      }),
    );
    add("dispose", await timeMs(async () => made?.[Symbol.asyncDispose]()));
    await successors.pop()?.[Symbol.asyncDispose]();
  }
  await provider[Symbol.asyncDispose]();
  const of = (name: string): readonly number[] => times.get(name) ?? [];
  return [
    ...Object.keys(actions).map(name => row(name, of(name), "sh -c true", of("sh"))),
    ...["create", "list and carry", "dispose"].map(name => row(name, of(name), "bwrap … true", of("bwrap"))),
  ];
}

interface Load {
  readonly wallMs: number;
  readonly cpuMs: number;
}

async function measured(action: () => Promise<number>): Promise<Load> {
  const before = cpuMs();
  const wallMs = await action();
  return { wallMs, cpuMs: cpuMs() - before };
}

/** Side by side: sandboxes, commands in them, and their end. @returns wall time of the commands alone, or of all */
async function sideBySide(
  commandCount: number,
  { withLife }: { readonly withLife: boolean },
): Promise<number> {
  const provider = await createBubblewrapProvider();
  const startedAt = performance.now();
  const sandboxes = await Promise.all(Array.from({ length: MANY }, () => create(provider)));
  const commandsMs = await timeMs(() =>
    Promise.all(
      sandboxes.map(async sandbox => {
        for (let index = 0; index < commandCount; index++) await sandbox.exec("true", { timeoutMs: 60_000 });
      }),
    ),
  );
  await Promise.all(sandboxes.map(sandbox => sandbox[Symbol.asyncDispose]()));
  const allMs = performance.now() - startedAt;
  await provider[Symbol.asyncDispose]();
  return withLife ? allMs : commandsMs;
}

async function plainSideBySide(words: readonly string[], each: number): Promise<number> {
  return timeMs(() =>
    Promise.all(
      Array.from({ length: MANY }, async () => {
        for (let index = 0; index < each; index++) await start(words);
      }),
    ),
  );
}

async function together() {
  const samples = { commands: [] as Load[], lives: [] as Load[], shells: [] as Load[], bares: [] as Load[] };
  // Commands are the difference between two loads, so that neither the start of processes nor sandboxes count.
  const [few, more] = [COMMANDS_EACH, 5 * COMMANDS_EACH];
  for (let round = 0; round < 3; round++) {
    const small = await measured(() => sideBySide(few, { withLife: true }));
    const large = await measured(() => sideBySide(more, { withLife: true }));
    const commandCount = MANY * (more - few);
    samples.lives.push(each(small, MANY));
    samples.commands.push({
      wallMs: (large.wallMs - small.wallMs) / commandCount,
      cpuMs: (large.cpuMs - small.cpuMs) / commandCount,
    });
    samples.shells.push(
      each(await measured(() => plainSideBySide(SHELL, COMMANDS_EACH)), MANY * COMMANDS_EACH),
    );
    samples.bares.push(each(await measured(() => plainSideBySide(BARE, 1)), MANY));
  }
  return samples;
}

function each({ wallMs, cpuMs }: Load, howMany: number): Load {
  return { wallMs: wallMs / howMany, cpuMs: cpuMs / howMany };
}

function best(loads: readonly Load[]): Load {
  return loads.reduce((a, b) => (a.cpuMs <= b.cpuMs ? a : b));
}

const rows = await alone();
const samples = await together();
const loads = {
  command: best(samples.commands),
  "sh -c true": best(samples.shells),
  [`sandbox with ${COMMANDS_EACH} commands`]: best(samples.lives),
  "bwrap … true": best(samples.bares),
};
if (values.json) {
  process.stdout.write(`${JSON.stringify({ alone: rows, together: loads, samples })}\n`);
} else {
  const ms = (value: number): string => `${value.toFixed(2)} ms`.padStart(10);
  process.stdout.write(`one at a time            p50        p95   floor\n`);
  for (const { what, p50Ms, p95Ms, floor, floorP50Ms, ratio } of rows) {
    const times = `${what.padEnd(16)}${ms(p50Ms)} ${ms(p95Ms)}`;
    process.stdout.write(`${times}   ${floor} ${floorP50Ms.toFixed(2)} ms, ratio ${ratio.toFixed(2)}\n`);
  }
  process.stdout.write(`${MANY} side by side        wall each   CPU each (best of 3)\n`);
  for (const [what, { wallMs, cpuMs }] of Object.entries(loads))
    process.stdout.write(`${what.padEnd(26)}${ms(wallMs)} ${ms(cpuMs)}\n`);
}
