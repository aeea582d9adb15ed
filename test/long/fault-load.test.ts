// Ten thousand commands on each kind of sandbox while connections are cut, daemons pause and sandboxes die.
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { capturedText } from "../../src/sandbox/captured-text.ts";
import { Engine } from "../../src/sandbox/docker/engine.ts";
import { createDockerProvider } from "../../src/sandbox/docker/provider.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { importImage, noDocker } from "../sandbox/docker-images.ts";
import { openFargate } from "../sandbox/ecs/fargate-for-tests.ts";
import { EcsFaults } from "../sandbox/ecs/random-faults.ts";
import { type FaultLoad, runFaultLoad } from "../sandbox/fault-load.ts";
import { type LocalDaemon, startLocalDaemon } from "../sandbox/local-daemon.ts";
import { listProcesses, onlyChild, SPAWNER } from "../sandbox/processes.ts";

const daemons: LocalDaemon[] = [];
afterEach(async () => {
  await Promise.all(daemons.splice(0).map(daemon => daemon[Symbol.asyncDispose]()));
});

const SPEC = { workdir: "/app", env: {}, network: "none", diskBytes: 8 << 20 } as const;
const COMMANDS = 10_000;
const LOAD = { commandCount: COMMANDS, sandboxCount: 8, concurrency: 8, everyMs: 60 } as const;

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

function pick<T>(list: readonly T[], random: () => number): T | undefined {
  return list[Math.floor(random() * list.length)];
}

async function pause(pid: number, random: () => number): Promise<void> {
  try {
    process.kill(pid, "SIGSTOP");
    await sleep(200 * random());
    process.kill(pid, "SIGCONT");
  } catch {} // it has ended
}

/** Reads the log of a living sandbox. */
async function logInside(sandbox: Pick<Sandbox, "exec">): Promise<string | undefined> {
  const ended = await sandbox
    .exec("cat log", { timeoutMs: 60_000, outputLimitBytes: 1 << 20 })
    .catch(() => undefined);
  return ended === undefined ? undefined : capturedText(ended.stdout);
}

async function run(load: Omit<FaultLoad, keyof typeof LOAD | "random">): Promise<void> {
  const random = new RandomStream(deriveSeed("fault load"));
  const counts = await runFaultLoad({ ...LOAD, ...load, random: () => random.uniform() });
  console.log(JSON.stringify(counts));
  expect(counts.faults).toBeGreaterThan(10);
  // Faults are the exception here; were most commands to fail, little would be shown.
  expect(counts.succeeded).toBeGreaterThan(0.9 * COMMANDS);
}

test("bubblewrap: processes that pause or die", async () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-load-"));
  chmodSync(folder, 0o755);
  await using provider = createBubblewrapProvider(folder);
  let made = 0;
  const spawner = () => onlyChild(process.pid, SPAWNER);
  const entryProcesses = () => listProcesses().filter(({ parent }) => parent === spawner());
  await run({
    create: async () => {
      const lease = { id: `load/${made++}`, generation: 1, deadlineMs: Date.now() + 600_000 };
      const sandbox = await provider.create({ ...SPEC, image: { kind: "host", files: [] } }, lease);
      return { sandbox, readLog: () => logInside(sandbox) };
    },
    fault: async random => {
      const kind = random();
      const entryProcess = pick(entryProcesses(), random);
      if (kind < 0.3) await pause(spawner(), random);
      else if (entryProcess !== undefined && kind < 0.9) await pause(entryProcess.pid, random);
      else if (entryProcess !== undefined) process.kill(entryProcess.pid, "SIGKILL");
    },
  });
  rmSync(folder, { recursive: true, force: true });
});

test("the daemon: connections that are cut, daemons that pause or die", async () => {
  const isDead = new Set<LocalDaemon>();
  await run({
    create: async () => {
      const daemon = await startLocalDaemon("programs", { lifeMs: 600_000 });
      daemons.push(daemon);
      // Keep it on the host, so that the test can read it when the daemon is dead.
      const log = join(daemon.listenerFolder, "../root/app/log");
      return {
        sandbox: daemon.sandbox,
        readLog: async () => (existsSync(log) ? readFileSync(log, "utf8") : ""),
      };
    },
    fault: async random => {
      const daemon = pick(
        daemons.filter(one => !isDead.has(one)),
        random,
      );
      if (daemon === undefined) return;
      const kind = random();
      if (kind < 0.5) daemon.stream().close();
      else if (kind < 0.97) await pause(onlyChild(daemon.process.pid), random);
      else {
        isDead.add(daemon);
        daemon.process.kill("SIGKILL");
      }
    },
  });
});

const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;
test.skipIf(noDocker !== undefined)(`docker: containers that are paused or killed${why}`, async () => {
  const reference = await importImage("t1-test/load:1");
  const engine = await Engine.open();
  await using provider = await createDockerProvider();
  let made = 0;
  const containers = async (): Promise<readonly string[]> => {
    const { value } = await engine.call("GET", "/containers/json");
    return (value as readonly { Id: string; Labels: Record<string, string> }[])
      .filter(({ Labels }) => Labels["t1.lease.id"]?.startsWith(`load/${process.pid}/`))
      .map(({ Id }) => Id);
  };
  await run({
    create: async () => {
      const id = `load/${process.pid}/${made++}`;
      const image = { kind: "docker", reference, files: [] } as const;
      const lease = { id, generation: 1, deadlineMs: Date.now() + 3_000_000 };
      const sandbox = await provider.create({ ...SPEC, image }, lease);
      return { sandbox, readLog: () => logInside(sandbox) };
    },
    fault: async random => {
      const container = pick(await containers(), random);
      if (container === undefined) return;
      const call = (path: string) =>
        engine.call("POST", `/containers/${container}/${path}`).catch(() => undefined);
      if (random() < 0.1) return void (await call("kill"));
      await call("pause");
      await sleep(200 * random());
      await call("unpause");
    },
  });
  engine.close();
});

test("fargate: ECS that is throttled, full, late and odd, Spot, connections that are cut, daemons that pause", async () => {
  await using fargate = await openFargate({}, { keptFile: "/app/log" });
  const { ecs } = fargate;
  const provider = fargate.another({ client: ecs.client({ requestTimeout: 1_000 }) });
  const faults = new EcsFaults(ecs);
  let made = 0;
  await run({
    create: async () => {
      const lease = { id: `load/${made++}`, generation: 1, deadlineMs: Date.now() + 3_000_000 };
      const image = { kind: "docker", reference: "x", files: [] } as const;
      const sandbox = await provider.create({ ...SPEC, diskBytes: 32 << 20, image }, lease);
      const container = faults.containerOf(lease.id);
      return {
        sandbox,
        readLog: async () => container.read("/app/log"),
        // If a sandbox cannot be stopped now, the provider stops it with itself.
        end: () => sandbox[Symbol.asyncDispose]().catch(() => undefined),
      };
    },
    fault: async random => {
      const kind = random();
      const living = pick(faults.running(), random);
      if (kind < 0.35) faults.failRequest(random);
      else if (kind < 0.4) faults.failStart(random);
      else if (living === undefined) return;
      else if (kind < 0.7) ecs.cut(living);
      else if (kind < 0.9) {
        const daemon = faults.daemonOf(living);
        if (daemon !== undefined) await pause(daemon, random);
      } else await faults.endTask(living, random);
    },
  });
  console.log(JSON.stringify(faults.counts));
  ecs.heal();
  await provider[Symbol.asyncDispose]();
  // Whatever came in between, nothing goes on costing money.
  await expect.poll(() => ecs.livingArns, { timeout: 60_000 }).toEqual([]);
});
