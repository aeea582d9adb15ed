// LocalStack's open core for tests, from PyPI (Apache-2.0), without Docker and without a token: its interpreter of Step
// Functions and its S3, with the patches of run-localstack.py. Fetched once, into node_modules/.cache,
// together with a Python 3.13 where the host has none.
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type Emulator, environmentFor, exists, freePort, ROOT, runUntilHealthy } from "./process.ts";

const PACKAGE = "localstack-core[runtime]==2026.3.0";
const CACHE = join(ROOT, "node_modules/.cache/t1/localstack-2026.3.0");
const UV = join(ROOT, "node_modules/.cache/t1/uv");
/** Newer releases of what it depends on break it. */
const AS_OF = "2026-04-10";

/** @returns the Python that has it, or why it cannot be had here */
export async function findLocalstack(): Promise<{ readonly python: string } | { readonly missing: string }> {
  const python = join(CACHE, "bin/python");
  if (await exists(join(CACHE, "ready"))) return { python };
  const run = promisify(execFile);
  const env = { ...process.env, UV_NO_CACHE: "1", UV_PYTHON_INSTALL_DIR: join(UV, "python") };
  const options = { timeout: 600_000, env };
  await rm(CACHE, { recursive: true, force: true });
  await mkdir(dirname(CACHE), { recursive: true });
  try {
    // pip alone looks for versions that fit for more than ten minutes; and uv fetches a Python that is missing.
    await run("python3", ["-m", "venv", UV], options);
    await run(join(UV, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "uv"], options);
    const uv = join(UV, "bin/uv");
    await run(uv, ["venv", "--quiet", "--python", process.env.T1_PYTHON313 ?? "3.13", CACHE], options);
    const install = ["pip", "install", "--quiet", "--python", python, "--exclude-newer", AS_OF];
    await run(uv, [...install, PACKAGE, "jsonata-python"], options);
    await mkdir(join(CACHE, "ready"));
    return { python };
  } catch (error) {
    const { stderr = "" } = error as { readonly stderr?: string };
    const said = (stderr || String(error)).trim().replaceAll(/\s*\n\s*/g, " ");
    return {
      missing: `${PACKAGE} on Python 3.13 (T1_PYTHON313 names one) cannot be installed: ${said.slice(0, 500)}`,
    };
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
