// Measures the overhead of a local run beside its stages: it plays some iterations with the demo's settings and compares
// the command's wall time with the times of the stages and the time before the first state. Prints, asserts nothing.
//   npx node bench/local-run.ts [--iterations 12] [--local /dev/shm/t1-bench]
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readJournal } from "../src/asl/journal-file.ts";
import { executionsFolder, newestSession } from "../src/local/journals.ts";
import { synthesizedAssembly } from "../src/local/synthesized-assembly.ts";
import { iterationPrefix, timingsKey } from "../src/run/keys.ts";
import { Timings } from "../src/run/records.ts";
import { readJson } from "../src/store/json.ts";
import { openStore } from "../src/store/open-store.ts";

const ROOT = join(import.meta.dirname, "..");
const { values } = parseArgs({
  options: {
    iterations: { type: "string", default: "12" },
    local: { type: "string", default: "/dev/shm/t1-bench" },
  },
});
const iterations = Number(values.iterations);
const run = `bench-${process.pid}`;

t1("tasks", "generate");
// Synthesize first: it happens once per version, so it is no cost of this run.
await synthesizedAssembly();
const startedMs = Date.now();
t1(
  ...["run", "start", "examples/demo/ppo.yaml", "--name", run, "--local", values.local],
  ...["--set", `training.iterations=${iterations}`],
);
const wallMs = Date.now() - startedMs;

const store = await openStore(values.local);
const totals = new Map<string, number>();
for (let iteration = 0; iteration < iterations; iteration++) {
  const timings = await readJson(store, timingsKey(iterationPrefix(run, iteration)), Timings);
  for (const [stage, ms] of Object.entries(timings)) totals.set(stage, (totals.get(stage) ?? 0) + ms);
}
const stagesMs = [...totals.values()].reduce((sum, ms) => sum + ms, 0);
const folder = executionsFolder(store, run);
const session = newestSession(folder) ?? "";
const journal = readJournal(join(folder, session, `t1-run@${run}-${session}.jsonl`));
const beforeMs = (journal?.head.startMs ?? startedMs) - startedMs;
const seconds = (ms: number): string => (ms / 1000).toFixed(1);
const share = (ms: number): string => `${((100 * ms) / wallMs).toFixed(1)} %`;
console.log(
  [
    `${iterations} iterations: wall ${seconds(wallMs)} s, stages ${seconds(stagesMs)} s, rest ${seconds(wallMs - stagesMs)} s (${share(wallMs - stagesMs)})`,
    `of the rest before the first state: ${seconds(beforeMs)} s (${share(beforeMs)}); between and after states: ${seconds(wallMs - stagesMs - beforeMs)} s (${share(wallMs - stagesMs - beforeMs)})`,
    [...totals].map(([stage, ms]) => `${stage} ${seconds(ms)} s`).join(", "),
  ].join("\n"),
);

function t1(...args: readonly string[]): void {
  const { status } = spawnSync(join(ROOT, "t1"), args, { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`t1 ${args.join(" ")} ended with ${status}`);
}
