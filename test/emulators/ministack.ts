// MiniStack for tests: AWS's interfaces as one Python program from PyPI (MIT), with the patches of run-ministack.py. It is
// fetched once per checkout, by pip, into node_modules/.cache; it listens on loopback only, keeps everything in memory,
// and is gone after the test with whatever it started.
import { execFile } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type Emulator, environmentFor, exists, freePort, ROOT, runUntilHealthy } from "./process.ts";

const PACKAGE = "ministack==1.5.33";
const CACHE = join(ROOT, "node_modules/.cache/t1", PACKAGE.replace("==", "-"));

interface EmulatorOptions {
  /** How the emulator runs tasks of ECS and jobs of Batch. */
  readonly tasks: "process" | "docker";
  /** Answers of tasks, by states of machines: AWS's format for Step Functions Local. */
  readonly mocks: string;
  readonly environment?: NodeJS.ProcessEnv;
}

/** @returns the Python that has it, or why it cannot be had here */
export async function findMinistack(): Promise<{ readonly python: string } | { readonly missing: string }> {
  const python = join(CACHE, "bin/python");
  if (await exists(join(CACHE, "ready"))) return { python };
  const run = promisify(execFile);
  const options = { timeout: 120_000 };
  try {
    await run("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 10))"], options);
  } catch {
    return { missing: "no Python 3.10 or newer" };
  }
  await rm(CACHE, { recursive: true, force: true });
  await mkdir(dirname(CACHE), { recursive: true });
  try {
    // Paths stand in a virtual environment's programs, so it is made where it stays; "ready" says that it is whole.
    await run("python3", ["-m", "venv", CACHE], options);
    await run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE], options);
    await mkdir(join(CACHE, "ready"));
    return { python };
  } catch (error) {
    return { missing: `${PACKAGE} cannot be installed from PyPI: ${String(error).split("\n")[0]}` };
  }
}

export async function startMinistack(python: string, options: EmulatorOptions): Promise<Emulator> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const stop = await runUntilHealthy(
    python,
    ["-W", "ignore", join(import.meta.dirname, "run-ministack.py")],
    {
      ...process.env,
      GATEWAY_PORT: `${port}`,
      BIND_HOST: "127.0.0.1",
      IOT_MTLS_ENABLED: "0",
      LOG_LEVEL: "WARNING",
      // Pauses before retries and between looks are shortened; states still wait in the same order.
      SFN_WAIT_SCALE: "0.05",
      PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
      T1_TASKS: options.tasks,
      T1_NODE: process.execPath,
      T1_ROOT: ROOT,
      SFN_MOCK_CONFIG: options.mocks,
      ...options.environment,
    },
    `${endpoint}/_ministack/health`,
  );
  return { endpoint, environment: environmentFor(endpoint), stop };
}
