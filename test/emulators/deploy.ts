// Puts the test flavour of the deployment into an emulator, by the plain CDK CLI.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");
const CDK = join(ROOT, "node_modules/.bin/cdk");
const ACCOUNT = "aws://000000000000/us-east-1";

/** @throws with what CDK printed, where a stack cannot be deployed */
export async function deploy(environment: NodeJS.ProcessEnv): Promise<void> {
  await withAssembly(async assembly => {
    await cdk(["bootstrap", ACCOUNT, "--app", assembly], environment);
    const quick = ["--concurrency", "4", "--require-approval", "never"];
    await cdk(["deploy", "t1-*", "--app", assembly, ...quick], environment);
  }, environment);
}

export async function destroy(environment: NodeJS.ProcessEnv): Promise<void> {
  await withAssembly(
    assembly => cdk(["destroy", "t1-*", "--app", assembly, "--force"], environment),
    environment,
  );
}

async function withAssembly(
  work: (folder: string) => Promise<void>,
  environment: NodeJS.ProcessEnv,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "t1-assembly-"));
  try {
    const app = `${process.execPath} ${join(import.meta.dirname, "app.ts")}`;
    await cdk(["synth", "--quiet", "--app", app, "--output", folder], environment);
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function cdk(words: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const [command = "", ...rest] = words;
  try {
    await promisify(execFile)(process.execPath, [CDK, command, ...rest, "--no-notices"], {
      ...{ cwd: ROOT, env, maxBuffer: 1 << 26 },
    });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`cdk ${command} failed:\n${`${stdout}${stderr}`.slice(-4_000)}`, { cause: error });
  }
}
