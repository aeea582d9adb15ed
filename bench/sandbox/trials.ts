// Real oracle trials per minute: each makes a sandbox, runs a public task's solution, grades it by the task's own tests
// and ends. Beside them the same by a plain script (overlay, bubblewrap, bash) and by Harbor, on the same tasks.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import { imageServices } from "../../src/rollout/image-services.ts";
import { type PreparedTask, prepareTask } from "../../src/rollout/prepare.ts";
import { openSandboxes, type SandboxKind } from "../../src/sandbox/open-sandboxes.ts";
import { AGENTS, tryTask } from "../../src/task-gates/try-task.ts";

const AT_ONCE = [1, 2, 4, 8];

export interface TrialOptions {
  /** Tasks in Harbor's format whose docker_image is there, and whose tests need no network. */
  readonly tasks: string;
  /** The images file for these images on bubblewrap (docs/images.md). */
  readonly images: string | undefined;
  /** Root file systems of the images for the plain script, by the task's name. Without them the script is left out. */
  readonly roots: string | undefined;
  /** A harbor program with its own arguments, as `harbor run -p FOLDER`; left out without. */
  readonly harbor: string | undefined;
  readonly sandboxes: readonly SandboxKind[];
  /** How often each task is played. */
  readonly rounds: number;
}

/** Heads and rows of a table: contenders, and their trials per minute by concurrency. */
export interface TrialTable {
  readonly heads: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** @param say is called with each figure as it comes */
export async function trialsPerMinute(
  options: TrialOptions,
  say: (text: string) => void,
): Promise<TrialTable> {
  const folder = resolve(options.tasks);
  const names = readdirSync(folder).sort();
  const own = await Promise.all(options.sandboxes.map(kind => ours(kind, folder, names, options.images)));
  const contenders: readonly Trials[] = [
    ...(options.roots === undefined ? [] : [plainScript(folder, resolve(options.roots))]),
    ...own,
    ...(options.harbor === undefined ? [] : [harbor(options.harbor, names.length)]),
  ];
  const trials = Array.from({ length: options.rounds }, () => names).flat();
  const cells = new Map<string, string[]>(contenders.map(({ name }) => [name, []]));
  for (const atOnce of AT_ONCE)
    for (const { name, run } of contenders) {
      const { solved, ms } = await run(trials, atOnce);
      const missing = solved === trials.length ? "" : ` (${solved} of ${trials.length} solved)`;
      const cell = `${((trials.length * 60_000) / ms).toFixed(1)}${missing}`;
      cells.get(name)?.push(cell);
      say(`  ${name}, ${atOnce} at once: ${cell} trials per minute`);
    }
  for (const one of own) await one[Symbol.asyncDispose]();
  return {
    heads: ["", ...AT_ONCE.map(String)],
    rows: [...cells].map(([name, figures]) => [name, ...figures]),
  };
}

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

async function ours(
  kind: SandboxKind,
  folder: string,
  names: readonly string[],
  imageFile: string | undefined,
): Promise<Trials & AsyncDisposable> {
  const sandboxes = await openSandboxes(kind);
  const images = imageServices(imageFile, sandboxes);
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

/** The cost of the work itself: the script has no isolation of the tests from the agent, no limits and no record. */
function plainScript(folder: string, roots: string): Trials {
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

/** Runs one job and takes the time that it reports itself, so that the start of its program does not count. */
function harbor(command: string, taskCount: number): Trials {
  return {
    name: "Harbor",
    run: async (trials, atOnce) => {
      const attempts = String(Math.round(trials.length / taskCount));
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
