// LocalStack's open core for tests, from PyPI (Apache-2.0), without Docker and without a token: its interpreter of Step
// Functions and its S3, with the patches of run-localstack.py. Needs Python 3.13; fetched once, into node_modules/.cache.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type Emulator, environmentFor, exists, freePort, ROOT, runUntilHealthy } from "./process.ts";

const PACKAGE = "localstack-core[runtime]==2026.3.0";
const CACHE = join(ROOT, "node_modules/.cache/t1/localstack-2026.3.0");
/** Newer releases of what it depends on break it. */
const AS_OF = "2026-04-10";

/** @returns the Python that has it, or why it cannot be had here */
export async function findLocalstack(): Promise<{ readonly python: string } | { readonly missing: string }> {
  const python = join(CACHE, "bin/python");
  if (await exists(join(CACHE, "ready"))) return { python };
  const run = promisify(execFile);
  const options = { timeout: 600_000 };
  const newest = process.env.T1_PYTHON313 ?? "python3.13";
  try {
    await run(newest, ["-c", "import sys; sys.exit(sys.version_info[:2] != (3, 13))"], options);
  } catch {
    return { missing: "no Python 3.13 (python3.13, or the one that T1_PYTHON313 names)" };
  }
  await rm(CACHE, { recursive: true, force: true });
  await mkdir(dirname(CACHE), { recursive: true });
  try {
    await run(newest, ["-m", "venv", CACHE], options);
    await run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"], options);
    // pip alone looks for versions that fit for more than ten minutes.
    const install = ["pip", "install", "--quiet", "--python", python, "--exclude-newer", AS_OF];
    await run(join(CACHE, "bin/uv"), [...install, PACKAGE, "jsonata-python"], options);
    await mkdir(join(CACHE, "ready"));
    return { python };
  } catch (error) {
    return { missing: `${PACKAGE} cannot be installed from PyPI: ${String(error).split("\n")[0]}` };
  }
}

/** @param mocks file of answers of tasks */
export async function startLocalstack(python: string, mocks: string): Promise<Emulator> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const volume = await mkdtemp(join(tmpdir(), "t1-localstack-"));
  const stop = await runUntilHealthy(
    python,
    [join(import.meta.dirname, "run-localstack.py")],
    {
      ...process.env,
      GATEWAY_LISTEN: `127.0.0.1:${port}`,
      FILESYSTEM_ROOT: volume,
      SFN_MOCK_CONFIG: mocks,
      SERVICES: "s3,stepfunctions,sts,iam",
      DISABLE_EVENTS: "1",
      SKIP_SSL_CERT_DOWNLOAD: "1",
      DNS_ADDRESS: "0",
    },
    `${endpoint}/_localstack/health`,
  );
  return {
    endpoint,
    environment: environmentFor(endpoint),
    stop: async () => {
      await stop();
      await rm(volume, { recursive: true, force: true });
    },
  };
}
