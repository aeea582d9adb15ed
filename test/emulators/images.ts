// The driver's and the trainer's image for an emulator that runs tasks as containers: from the Dockerfiles of
// containers/, over a local base, since a test pulls nothing. The driver's base gets bubblewrap in addition, for its sandboxes
// are such containers here.
//   T1_BASE_IMAGE   an image of the engine with Node 24, npm, glibc, apt and certificates
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "../..");

/** bubblewrap makes namespaces, which Docker's default profile forbids. */
export const DOCKER_OPTIONS =
  "--security-opt seccomp=unconfined --security-opt systempaths=unconfined --security-opt apparmor=unconfined";

/** @returns why there are none, undefined when both are there */
export async function buildImages(): Promise<string | undefined> {
  const base = process.env.T1_BASE_IMAGE;
  if (base === undefined) return "T1_BASE_IMAGE names no image";
  const withBubblewrap = "t1/driver-base:emulated";
  try {
    await docker(
      ["build", "--quiet", "--network", "host", "--tag", withBubblewrap, "-"],
      `FROM ${base}\nRUN apt-get update && apt-get install -y --no-install-recommends bubblewrap perl\n`,
    );
  } catch (error) {
    return `no base with bubblewrap: ${String(error).slice(0, 500)}`;
  }
  await build("driver", withBubblewrap);
  await build("trainer", base);
  return undefined;
}

function build(name: string, base: string): Promise<void> {
  const settings = [`BASE_IMAGE=${base}`, `NODE_IMAGE=${base}`, "ONNXRUNTIME_NODE_INSTALL=skip"];
  return docker([
    ...["build", "--quiet", "--network", "host", "--file", join(ROOT, "containers", name, "Dockerfile")],
    ...settings.flatMap(setting => ["--build-arg", setting]),
    ...["--tag", `t1/${name}:emulated`, ROOT],
  ]);
}

async function docker(words: readonly string[], input?: string): Promise<void> {
  const running = promisify(execFile)("docker", [...words], { maxBuffer: 1 << 26 });
  if (input !== undefined) running.child.stdin?.end(input);
  await running;
}
