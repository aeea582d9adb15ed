// Plays the demo's run under several seeds, with dense and with binary reward, and once with rewards permuted among the
// episodes of each iteration, which must gain nothing. Measures each on the pools it never saw. Prints Markdown.
// Usage: npx node bench/demo-runs.ts [--local DIR] [RUN…], where RUN is dense-1, binary-2, permuted-1 …
// It reads runs and evaluations that exist and does not make them again.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { z } from "zod";
import { type IterationMetrics, readMetrics } from "../src/learning/metrics.ts";
import { iterationPrefix, timingsKey } from "../src/run/keys.ts";
import { Timings } from "../src/run/records.ts";
import { readJson } from "../src/store/json.ts";
import type { ObjectStore } from "../src/store/object-store.ts";
import { openStore } from "../src/store/open-store.ts";
import type { MetricName } from "../src/training/metrics.ts";

const ROOT = join(import.meta.dirname, "..");
const POOLS = ["held-out-parameters", "held-out-families"] as const;
const SEEDS = [1, 2, 3];
const SETTINGS: Readonly<Record<string, readonly string[]>> = {
  dense: [],
  binary: ["--set", "reward.kind=binary"],
  permuted: ["--set", "training.permuteRewards=true"],
};
const ALL = [
  ...SEEDS.map(seed => `dense-${seed}`),
  ...SEEDS.map(seed => `binary-${seed}`),
  `permuted-${SEEDS[0]}`,
];
const ITERATIONS = 60;
/** Each row of a curve is the mean of this many iterations. */
const ROW = 10;

const Interval = z.object({ mean: z.number(), low: z.number(), high: z.number() });
const Rates = z.object({ taskCount: z.int(), resolved: Interval, reward: Interval });
const Summary = Rates.extend({ missingCount: z.int(), groups: z.record(z.string(), Rates) });
const Evaluation = z.object({
  baseline: Summary,
  policy: Summary,
  gain: Summary.partial({ missingCount: true }),
});
type Evaluation = z.infer<typeof Evaluation>;

const { values, positionals } = parseArgs({
  options: { local: { type: "string", default: ".t1/store" } },
  allowPositionals: true,
});
const runs = positionals.length === 0 ? ALL : positionals;
const store = await openStore(values.local);

t1(["tasks", "generate"]);
for (const run of runs) {
  const [kind = "", seed = ""] = run.split("-");
  const settings = SETTINGS[kind];
  if (settings === undefined || seed === "") throw new Error(`${run}: expected one of ${ALL.join(", ")}`);
  const startedAt = performance.now();
  const how = ["--continue", "--set", `seed=${seed}`, ...settings, "--local", values.local];
  t1(["run", "start", "examples/demo/ppo.yaml", "--name", run, ...how]);
  const evaluations = POOLS.map(pool => evaluate(run, pool));
  const minutes = (performance.now() - startedAt) / 60_000;
  console.log(`\n### ${run}\n\n\`./t1 run start examples/demo/ppo.yaml ${how.slice(1, -2).join(" ")}\`\n`);
  for (const [index, pool] of POOLS.entries()) console.log(`${gains(pool, evaluations[index])}\n`);
  console.log(`${curve(await readRows(store, run))}\n\n${await whereTheTimeWent(store, run)}`);
  console.log(`Wall time of what this command had to do: ${minutes.toFixed(1)} min.`);
}

/** Runs the product as its users do; its progress goes to stderr. @returns what it printed */
function t1(args: readonly string[]): string {
  const result = spawnSync(join(ROOT, "t1"), args, {
    cwd: ROOT,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 1 << 26,
  });
  if (result.status !== 0)
    throw new Error(`t1 ${args.join(" ")} ended with ${result.status ?? result.signal}`);
  return result.stdout;
}

function evaluate(run: string, pool: string): Evaluation {
  const args = ["evaluate", run, "--pool", `.t1/tasks/${pool}`, "--local", values.local, "--json"];
  return Evaluation.parse(JSON.parse(t1(args)));
}

function gains(pool: string, { baseline, policy, gain }: Evaluation): string {
  const row = (
    name: string,
    of: (from: Evaluation[keyof Evaluation]) => z.infer<typeof Rates> | undefined,
  ) => {
    const [before, after, difference] = [of(baseline), of(policy), of(gain)];
    if (before === undefined || after === undefined || difference === undefined) return [];
    const { mean, low, high } = difference.resolved;
    const points = (share: number) => (100 * share).toFixed(1);
    return [
      `| ${name} | ${difference.taskCount} | ${points(before.resolved.mean)} | ${points(after.resolved.mean)} | ${mean < 0 ? "" : "+"}${points(mean)} [${points(low)}, ${points(high)}] | ${before.reward.mean.toFixed(3)} | ${after.reward.mean.toFixed(3)} |`,
    ];
  };
  const kinds = Object.keys(gain.groups).filter(name => name.startsWith("kind "));
  return [
    `| ${pool} | tasks | resolved % before | after | difference, 95 % | reward before | after |`,
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ...row("all", from => from),
    ...kinds.flatMap(name => row(name.slice("kind ".length), from => from.groups[name])),
  ].join("\n");
}

function readRows(from: ObjectStore, run: string): Promise<readonly IterationMetrics[]> {
  const iterations = Array.from({ length: ITERATIONS }, (_, iteration) => iteration);
  return Promise.all(iterations.map(iteration => readMetrics(from, iterationPrefix(run, iteration))));
}

/** Iterations before the actor moves have no clip share; means are over those that have the number. */
function curve(metrics: readonly IterationMetrics[]): string {
  const columns: readonly (readonly [title: string, MetricName, digits: number])[] = [
    ["reward", "episodes.meanReward", 3],
    ["resolved share", "episodes.resolvedRate", 3],
    ["turns", "episodes.meanTurns", 2],
    ["uniform groups", "groups.uniform", 1],
    ["explained variance", "critic.explainedVariance", 2],
    ["entropy", "policy.entropy", 3],
    ["clip share", "policy.clipShare", 4],
    ["mean \\|Δ log p\\| replayed", "mismatch.replayed.mean", 5],
    ["free", "mismatch.free.mean", 5],
  ];
  const rows = Array.from({ length: Math.ceil(metrics.length / ROW) }, (_, index) => {
    const part = metrics.slice(index * ROW, (index + 1) * ROW);
    const cells = columns.map(([, name, digits]) => {
      const numbers = part.map(({ numbers }) => numbers[name]).filter(number => number !== undefined);
      return numbers.length === 0
        ? "–"
        : (numbers.reduce((a, b) => a + b, 0) / numbers.length).toFixed(digits);
    });
    return `| ${index * ROW}–${index * ROW + part.length - 1} | ${cells.join(" | ")} |`;
  });
  return [
    `| iterations | ${columns.map(([name]) => name).join(" | ")} |`,
    `| --- |${" ---: |".repeat(columns.length)}`,
    ...rows,
  ].join("\n");
}

async function whereTheTimeWent(from: ObjectStore, run: string): Promise<string> {
  const totals = new Map<string, number>();
  for (let iteration = 0; iteration < ITERATIONS; iteration++) {
    const key = timingsKey(iterationPrefix(run, iteration));
    if ((await from.head(key)) === undefined) continue;
    const timings = await readJson(from, key, Timings);
    for (const [stage, ms] of Object.entries(timings)) totals.set(stage, (totals.get(stage) ?? 0) + ms);
  }
  const all = [...totals.values()].reduce((a, b) => a + b, 0);
  const parts = [...totals].sort(([, a], [, b]) => b - a).filter(([, ms]) => ms >= 0.005 * all);
  return `Time of the iterations: ${parts.map(([stage, ms]) => `${stage} ${(ms / 1000).toFixed(0)} s (${((100 * ms) / all).toFixed(0)} %)`).join(", ")}.`;
}
