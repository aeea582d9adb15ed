// A run that takes seconds: a handful of tasks and a policy of random weights, whose answers are noise. What they do in
// a sandbox is of no interest here; that nothing is lost or counted twice is.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { newModelFiles } from "../../src/run/new-model.ts";
import { generatePool } from "../../src/task/generate/pools.ts";
import { writeTask } from "../../src/task/generate/write-task.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const MODEL = {
  vocabSize: 300,
  hiddenSize: 32,
  layers: 2,
  heads: 2,
  keyValueHeads: 1,
  headDim: 16,
  experts: 4,
  expertsPerToken: 2,
  expertSize: 32,
  ropeTheta: 10_000,
  maxPositions: 256,
};

export interface TinyRun {
  readonly folder: string;
  readonly config: string;
  readonly store: string;
  readonly pool: string;
}

/**
 * @param settings YAML that is added to the config, e.g. "rollout:\n  episodes: 4\n"
 * @param weights a model in test/fixtures to start from, of at least 300 tokens; it gets the tokenizer of the tiny one
 */
export async function makeTinyRun({
  tasks = 12,
  iterations = 3,
  settings = "rollout:\n  episodes: 8\n",
  weights = undefined as string | undefined,
} = {}): Promise<TinyRun> {
  const folder = mkdtempSync(join(tmpdir(), "t1-run-"));
  const pool = join(folder, "pool");
  let index = 0;
  for (const task of generatePool("demonstrations", { count: tasks, seed: 5 })) {
    const name = `task-${`${index++}`.padStart(3, "0")}`;
    await writeTask(task, { pool: "demonstrations", name, folder: join(pool, name) });
  }
  const model = join(folder, "model");
  mkdirSync(model);
  const files = await newModelFiles(MODEL, pool, { seed: 0 });
  for (const name of files.names) writeFileSync(join(model, name), await files.read(name));
  if (weights !== undefined)
    cpSync(join(import.meta.dirname, "../fixtures", weights), model, { recursive: true });
  const config = join(folder, "run.yaml");
  writeFileSync(
    config,
    `algorithm: ppo
policy: model
tasks:
  pool: pool
agent:
  turns: 2
  answerTokens: 12
  contextTokens: 220
  observationTokens: 16
  commandSeconds: 3
reward:
  scale: 7
threads: 2
keep:
  policyEvery: 1
  stateEvery: 1
training:
  iterations: ${iterations}
  minibatches: 2
  critic:
    onlyIterations: 1
${settings}`,
  );
  return { folder, config, store: join(folder, "store"), pool };
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `t1` to its end. Never throws for its exit code. */
export function t1(...args: readonly string[]): Promise<Ended> {
  return t1Through([], ...args);
}

/** Runs `t1` by way of other programs, which get its command line as their last arguments. */
export async function t1Through(way: readonly string[], ...args: readonly string[]): Promise<Ended> {
  const [program, ...words] = [...way, process.execPath, MAIN, ...args];
  try {
    const { stdout, stderr } = await promisify(execFile)(program, words, { maxBuffer: 1 << 26 });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as Ended;
    return { code, stdout, stderr };
  }
}

/** Starts `t1` and leaves it running. */
export function startT1(...args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [MAIN, ...args], { stdio: "ignore" });
}
