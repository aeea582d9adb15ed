// MiniStack for tests: AWS's interfaces as one Python program from PyPI (MIT), with the patches of run-ministack.py. It is
// fetched once per checkout, by pip, into node_modules/.cache; it listens on loopback only, keeps everything in memory,
// and is gone after the test with whatever it started.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdir, rename, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");
const PACKAGE = "ministack==1.5.33";
const CACHE = join(ROOT, "node_modules/.cache/t1", PACKAGE.replace("==", "-"));
const START_MS = 60_000;

export interface Emulator {
  /** `http://127.0.0.1:…` */
  readonly endpoint: string;
  /** Of programs that are to talk to it and to nothing else. */
  readonly environment: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

export interface EmulatorOptions {
  /** What stands for tasks of ECS and jobs of Batch. */
  readonly tasks: "process" | "docker" | "none";
  /** Answers of tasks, by states of machines: AWS's format for Step Functions Local. */
  readonly mocks?: string;
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
    await mkdir(join(CACHE, "making"));
    await rename(join(CACHE, "making"), join(CACHE, "ready"));
    return { python };
  } catch (error) {
    return { missing: `${PACKAGE} cannot be installed from PyPI: ${String(error).split("\n")[0]}` };
  }
}

export async function startMinistack(python: string, options: EmulatorOptions): Promise<Emulator> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const child = spawn(python, ["-W", "ignore", join(import.meta.dirname, "run-ministack.py")], {
    env: {
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
      ...(options.mocks !== undefined && { SFN_MOCK_CONFIG: options.mocks }),
      ...options.environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", chunk => log.push(String(chunk)));
  // A test runner that is killed must not leave it behind.
  process.once("exit", () => child.kill("SIGKILL"));
  const stop = (): Promise<void> => end(child);
  for (const deadline = Date.now() + START_MS; ; await sleep(100)) {
    const isUp = await fetch(`${endpoint}/_ministack/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) break;
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`MiniStack does not start: ${log.join("").slice(-4_000)}`);
    }
  }
  return { endpoint, environment: environmentFor(endpoint), stop };
}

/** For any emulator: credentials that are none, and no way to a real account. */
export function environmentFor(endpoint: string): NodeJS.ProcessEnv {
  const { AWS_PROFILE: _, ...inherited } = process.env;
  return {
    ...inherited,
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: "us-east-1",
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_CONFIG_FILE: "/dev/null",
    AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
    CDK_DISABLE_CLI_TELEMETRY: "1",
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address !== null
          ? resolve(address.port)
          : reject(new Error("no port")),
      );
    });
  });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
