// The driver's and the trainer's image for an emulator that runs tasks as containers: from the Dockerfiles of
// containers/, over their usual base. The driver's gets bubblewrap in addition, for its sandboxes are such containers here.
//   T1_BASE_IMAGE   another base: with Node 24, npm, glibc, apt and certificates
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");

/** Label of containers that names the owner of their tasks. */
export const EMULATOR_LABEL = "t1.emulator";

/** bubblewrap makes namespaces, which Docker's default profile forbids. */
export const DOCKER_OPTIONS =
  "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined";

/** @returns why there are none, undefined when both are there */
export async function buildImages(): Promise<string | undefined> {
  const base = process.env.T1_BASE_IMAGE ?? "node:24-bookworm-slim";
  const withBubblewrap = "t1/driver-base:emulated";
  try {
    await docker(["version"]);
  } catch (error) {
    return `no container engine answers: ${lastLine(error)}`;
  }
  try {
    await docker(
      ["build", "--quiet", "--network", "host", "--tag", withBubblewrap, "-"],
      `FROM ${base}\nRUN apt-get update && apt-get install -y --no-install-recommends bubblewrap perl\n`,
    );
  } catch (error) {
    return `bubblewrap cannot be put over ${base} (T1_BASE_IMAGE names another base): ${lastLine(error)}`;
  }
  await build("driver", withBubblewrap);
  await build("trainer", base);
  return undefined;
}

function lastLine(error: unknown): string {
  const { stderr = "" } = error as { readonly stderr?: string };
  return stderr.trim().split("\n").at(-1) || `${error}`;
}

/** Replaces the last image, which would otherwise stay behind without a name. */
async function build(name: string, base: string): Promise<void> {
  const tag = `t1/${name}:emulated`;
  const settings = [`BASE_IMAGE=${base}`, `NODE_IMAGE=${base}`, "ONNXRUNTIME_NODE_INSTALL=skip"];
  const [last] = await lines("images", "--quiet", "--no-trunc", tag);
  await docker([
    ...["build", "--quiet", "--network", "host", "--file", join(ROOT, "containers", name, "Dockerfile")],
    ...settings.flatMap(setting => ["--build-arg", setting]),
    ...["--tag", tag, ROOT],
  ]);
  const [now] = await lines("images", "--quiet", "--no-trunc", tag);
  if (last !== undefined && last !== now) await docker(["rmi", last]).catch(() => undefined); // somebody uses it
}

async function lines(...words: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)("docker", [...words]);
  return stdout.split("\n").filter(line => line !== "");
}

async function docker(words: readonly string[], input?: string): Promise<void> {
  const running = promisify(execFile)("docker", [...words], { maxBuffer: 1 << 26 });
  if (input !== undefined) running.child.stdin?.end(input);
  await running;
}

/** Tasks that still run when their emulator has ended. @param emulator by whose value they are labelled */
export async function removeContainers(emulator: string): Promise<void> {
  const ids = await lines("ps", "--all", "--quiet", "--filter", `label=${EMULATOR_LABEL}=${emulator}`);
  if (ids.length > 0) await docker(["rm", "--force", "--volumes", ...ids]);
}
