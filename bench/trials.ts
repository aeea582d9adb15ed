// Real oracle trials per minute: each makes a sandbox, runs a public task's solution, grades it by the task's own tests
// and ends. Beside them the same by a plain script (overlay, bubblewrap, bash) and by Harbor, on the same tasks.
//
//   npx node bench/trials.ts --tasks FOLDER [--images FILE] [--sandboxes KIND,…] [--at-once N,…] [--rounds N]
//                            [--roots FOLDER] [--harbor COMMAND]
//
//   --tasks FOLDER     tasks in Harbor's format whose docker_image is there, and whose tests need no network
//   --images FILE      what stands for these images on bubblewrap (docs/images.md)
//   --roots FOLDER     for the plain script: root file systems of the images, by the task's name
//   --harbor COMMAND   a harbor program, with its own arguments: "harbor run -p FOLDER"
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { imageServices } from "../src/cli/image-options.ts";
import { openSandboxes, type SandboxKind } from "../src/cli/sandbox-options.ts";
import { formatTable } from "../src/cli/table.ts";
import { type PreparedTask, prepareTask } from "../src/pipeline/prepare.ts";
import { AGENTS, tryTask } from "../src/pipeline/try-task.ts";

const { values } = parseArgs({
  options: {
    tasks: { type: "string" },
    images: { type: "string" },
    sandboxes: { type: "string", default: "bubblewrap" },
    "at-once": { type: "string", default: "1,2,4,8" },
    rounds: { type: "string", default: "4" },
    roots: { type: "string" },
    harbor: { type: "string" },
  },
});
if (values.tasks === undefined) throw new Error("usage: see the top of bench/trials.ts");
const folder = resolve(values.tasks);
const names = readdirSync(folder).sort();
const rounds = Number(values.rounds);

interface Trials {
  readonly name: string;
  run(trials: readonly string[], atOnce: number): Promise<{ readonly solved: number; readonly ms: number }>;
}

async function inTurn(trials: readonly string[], atOnce: number, one: (name: string) => Promise<boolean>) {
  const startedAt = performance.now();
  const left = [...trials];
  let solved = 0;
  const work = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) if (await one(name)) solved++;
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return { solved, ms: performance.now() - startedAt };
}

async function ours(kind: SandboxKind): Promise<Trials & AsyncDisposable> {
  const sandboxes = await openSandboxes(kind);
  const images = imageServices(values.images, sandboxes);
  const prepared = new Map<string, PreparedTask>();
  for (const name of names)
    prepared.set(name, await prepareTask(join(folder, name), { ...images, demonstration: false }));
  return {
    name: `t1 ${kind}`,
    run: (trials, atOnce) =>
      inTurn(trials, atOnce, async name => {
        const task = prepared.get(name);
        if (task === undefined) throw new Error(name);
        const [step] = await tryTask(task, AGENTS.oracle(task), { mode: "hardened", from: 0 }, sandboxes);
        return step?.run.report.outcome === 1;
      }),
    [Symbol.asyncDispose]: async () => sandboxes[Symbol.asyncDispose](),
  };
}

/** No isolation of the tests from the agent, no limits, no record: what the work itself costs. */
function plainScript(roots: string): Trials {
  const script = `set -e
mount -t tmpfs none /mnt && mkdir /mnt/u /mnt/w /mnt/m
mount -t overlay none -o lowerdir="$1",upperdir=/mnt/u,workdir=/mnt/w /mnt/m
cp -r "$2/solution" "$2/tests" /mnt/m/ && mkdir -p /mnt/m/logs/verifier && chmod +x /mnt/m/tests/test.sh /mnt/m/solution/solve.sh
exec bwrap --unshare-all --die-with-parent --uid 0 --gid 0 --bind /mnt/m / --proc /proc --dev /dev --tmpfs /tmp --chdir /app --setenv HOME /root --setenv UV_OFFLINE 1 bash -c '/solution/solve.sh > /dev/null 2>&1; /tests/test.sh > /dev/null 2>&1; grep -qx 1 /logs/verifier/reward.txt'`;
  return {
    name: "plain overlay, bwrap and bash",
    run: (trials, atOnce) =>
      inTurn(trials, atOnce, async name => {
        const words = ["--mount", "--propagation", "private", "bash", "-c", script, "bash"];
        const child = spawn("unshare", [...words, join(roots, name), join(folder, name)], {
          stdio: "ignore",
        });
        const [code] = await once(child, "exit");
        return code === 0;
      }),
  };
}

const HarborJob = z.object({
  started_at: z.string(),
  finished_at: z.string(),
  stats: z.object({
    evals: z.record(z.string(), z.object({ metrics: z.array(z.object({ mean: z.number() })) })),
  }),
});

/** One job; the time is what it says itself, so that the start of its program does not count. */
function harbor(command: string): Trials {
  return {
    name: "Harbor",
    run: async (trials, atOnce) => {
      const attempts = String(Math.round(trials.length / names.length));
      const job = ["-a", "oracle", "-e", "docker", "-k", attempts, "-n", String(atOnce), "-y", "-q"];
      const child = spawn("/bin/sh", ["-c", `${command} "$@"`, "sh", ...job], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      let output = "";
      child.stdout.on("data", text => {
        output += text;
      });
      const [code] = await once(child, "exit");
      const [, file] = /Results written to\s+(\S+)/.exec(output) ?? [];
      if (code !== 0 || file === undefined)
        throw new Error(`harbor ended with ${code}: ${output.slice(-2_000)}`);
      const result = HarborJob.parse(JSON.parse(readFileSync(file, "utf8")));
      const [evaluation] = Object.values(result.stats.evals);
      return {
        solved: Math.round((evaluation?.metrics[0]?.mean ?? 0) * trials.length),
        ms: Date.parse(result.finished_at) - Date.parse(result.started_at),
      };
    },
  };
}

const own = await Promise.all(values.sandboxes.split(",").map(kind => ours(kind as SandboxKind)));
const contenders: readonly Trials[] = [
  ...(values.roots === undefined ? [] : [plainScript(resolve(values.roots))]),
  ...own,
  ...(values.harbor === undefined ? [] : [harbor(values.harbor)]),
];
const widths = values["at-once"].split(",").map(Number);
const trials = Array.from({ length: rounds }, () => names).flat();
const cells = new Map<string, string>();
for (const atOnce of widths)
  for (const one of contenders) {
    const { solved, ms } = await one.run(trials, atOnce);
    const perMinute = (trials.length * 60_000) / ms;
    const cell = `${perMinute.toFixed(1)}${solved === trials.length ? "" : ` (${solved} of ${trials.length} solved)`}`;
    cells.set(`${one.name} ${atOnce}`, cell);
    process.stderr.write(`${one.name}, ${atOnce} at once: ${cell} trials per minute\n`);
  }
for (const one of own) await one[Symbol.asyncDispose]();
process.stdout.write(
  formatTable(
    ["trials per minute, at once:", ...widths.map(String)],
    contenders.map(({ name }) => [name, ...widths.map(atOnce => cells.get(`${name} ${atOnce}`) ?? "")]),
  ),
);
