// What a sandbox in a container costs beside what its engine costs alone: a command beside an exec of the Engine API over a
// kept connection, a sandbox beside a bare container that sleeps. The two sides alternate in one run, in containers of the
// same image. Usage: npx node bench/docker-sandbox.ts IMAGE [--json]     (an image with /bin/sh and sleep)
import { parseArgs } from "node:util";
import { Engine } from "../src/sandbox/docker/engine.ts";
import { createDockerProvider } from "../src/sandbox/docker/provider.ts";
import type { Sandbox } from "../src/sandbox/sandbox.ts";

const ROUNDS = 100;
const LIVES = 12;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false } },
});
const [reference] = positionals;
if (reference === undefined) throw new Error("usage: bench/docker-sandbox.ts IMAGE [--json]");

const engine = await Engine.open();
const provider = await createDockerProvider();
let count = 0;

function create(): Promise<Sandbox> {
  const spec = {
    image: { kind: "docker", reference: reference ?? "", files: [] },
    workdir: "/app",
    env: {},
    network: "none",
    diskBytes: 64 << 20,
  } as const;
  const id = `bench/${process.pid}/${count++}`;
  return provider.create(spec, { id, generation: 1, deadlineMs: Date.now() + 600_000 });
}

async function bareContainer(): Promise<string> {
  const options = {
    Image: reference,
    Entrypoint: ["sleep", "600"],
    HostConfig: { NetworkMode: "none", Init: true },
  };
  const { value } = await engine.call("POST", "/containers/create", options);
  const { Id } = value as { Id: string };
  await engine.call("POST", `/containers/${Id}/start`);
  return Id;
}

const remove = (id: string) => engine.call("DELETE", `/containers/${id}?force=true`);

/** As a client of the Engine API does it: make it, start it, read its output to the end. */
async function engineExec(container: string): Promise<void> {
  const asked = { Cmd: ["/bin/sh", "-c", "true"], AttachStdout: true, AttachStderr: true };
  const { value } = await engine.call("POST", `/containers/${container}/exec`, asked);
  await engine.call("POST", `/exec/${(value as { Id: string }).Id}/start`, { Detach: false, Tty: false });
}

async function timeMs(action: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await action();
  return performance.now() - startedAt;
}

function quantile(times: readonly number[], part: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

const sandbox = await create();
const bare = await bareContainer();
const terminal = await sandbox.terminal({ columns: 160, rows: 40 });
const times: Record<string, number[]> = {};
const add = async (name: string, action: () => Promise<unknown>): Promise<void> => {
  const list = times[name] ?? [];
  times[name] = list;
  list.push(await timeMs(action));
};
for (let round = 0; round < ROUNDS; round++) {
  await add("command", () => sandbox.exec("true", { timeoutMs: 60_000 }));
  await add("engine exec", () => engineExec(bare));
  await add("terminal turn", async () => {
    await terminal.send(":\n");
    await terminal.readNew();
    await terminal.screen();
  });
}
for (let round = 0; round < LIVES; round++) {
  let made: Sandbox | undefined;
  let id = "";
  await add("create", async () => {
    made = await create();
  });
  await add("dispose", async () => made?.[Symbol.asyncDispose]());
  await add("bare create", async () => {
    id = await bareContainer();
  });
  await add("bare remove", () => remove(id));
}
await remove(bare);
await provider[Symbol.asyncDispose]();
engine.close();

const rows = [
  ["command", "engine exec"],
  ["terminal turn", "engine exec"],
  ["create", "bare create"],
  ["dispose", "bare remove"],
].map(([what = "", floor = ""]) => {
  const [own, other] = [times[what] ?? [], times[floor] ?? []];
  const [p50Ms, floorP50Ms] = [quantile(own, 0.5), quantile(other, 0.5)];
  return { what, p50Ms, p95Ms: quantile(own, 0.95), floor, floorP50Ms, ratio: p50Ms / floorP50Ms };
});
if (values.json) process.stdout.write(`${JSON.stringify(rows)}\n`);
else
  for (const { what, p50Ms, p95Ms, floor, floorP50Ms, ratio } of rows)
    process.stdout.write(
      `${what.padEnd(14)} p50 ${p50Ms.toFixed(2)} ms, p95 ${p95Ms.toFixed(2)} ms; ${floor} ${floorP50Ms.toFixed(2)} ms, ratio ${ratio.toFixed(2)}\n`,
    );
