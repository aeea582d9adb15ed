// The images of containers/, built from a local base and started as their definitions start them.
//
//   T1_BASE_IMAGE   an image of the engine with Node 24, npm, glibc and certificates; without it nothing is built
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { importImage } from "../sandbox/docker-images.ts";

const base = process.env.T1_BASE_IMAGE;
const ROOT = join(import.meta.dirname, "../..");
const why = base === undefined ? " (skipped: T1_BASE_IMAGE names no image)" : "";

function docker(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync("docker", args, { encoding: "utf8" });
  return { status, stdout: stdout.trim(), stderr };
}

describe.skipIf(base === undefined)(`images of our own${why}`, () => {
  beforeAll(() => {
    const args = [`BASE_IMAGE=${base}`, `NODE_IMAGE=${base}`, "ONNXRUNTIME_NODE_INSTALL=skip"];
    for (const name of ["driver", "sampler", "trainer", "sandbox-toolkit"])
      execFileSync("docker", [
        ...["build", "--quiet", "--network", "host", "--file", `containers/${name}/Dockerfile`],
        ...args.flatMap(arg => ["--build-arg", arg]),
        ...["--tag", `t1-test/${name}:1`, ROOT],
      ]);
  });

  test.each(["driver", "trainer"])("the %s says what it needs, and ends as for wrong input", name => {
    const { status, stderr } = docker("run", "--rm", "--network", "none", `t1-test/${name}:1`);
    expect([status, stderr]).toEqual([2, expect.stringContaining("T1_STORE_URL")]);
  });

  test("the trainer computes without a GPU's libraries, and refuses a GPU that is not there", () => {
    const run = (device: string) =>
      docker(
        ...["run", "--rm", "--network", "none", "--entrypoint", "node", "t1-test/trainer:1"],
        ...["--input-type=module", "-e"],
        `const { Graph } = await import("/t1/src/tensor/graph.ts");
         const { Session } = await import("/t1/src/tensor/session.ts");
         const graph = new Graph();
         graph.output("x", graph.input("x", ["N"]));
         await Session.open(graph, { threads: 1, device: "${device}" }).then(() => console.log("open"), error => console.log(error.message));`,
      ).stdout;
    expect(run("cpu")).toBe("open");
    expect(run("cuda")).toContain("cannot compute on a GPU");
  });

  test("the sampler serves, is healthy, and ends well when it is told to stop", async () => {
    const { stdout: id } = docker(
      "run",
      "-d",
      "--network",
      "none",
      "-e",
      "T1_STORE_URL=/tmp/s",
      "t1-test/sampler:1",
    );
    onTestFinished(() => void docker("rm", "--force", id));
    const healthy = () => docker("exec", id, "node", "containers/sampler/health.ts").status;
    await expect.poll(healthy, { timeout: 60_000, interval: 500 }).toBe(0);
    docker("stop", "--time", "30", id);
    expect(docker("inspect", "--format", "{{.State.ExitCode}}", id).stdout).toBe("0");
    expect(docker("logs", id).stdout).toMatch(/^serving .*\ndraining: 0 requests under way$/);
  });

  test("the toolkit copies itself into a volume, where its Node runs in an image without a C library", async () => {
    const image = await importImage("t1-test/bare:1");
    const volume = docker("volume", "create").stdout;
    onTestFinished(() => void docker("volume", "rm", volume));
    expect(
      docker("run", "--rm", "-v", `${volume}:/.t1`, "--network", "none", "t1-test/sandbox-toolkit:1").status,
    ).toBe(0);
    const node = ["/.t1/ld.so", "--inhibit-cache", "--library-path", "/.t1/lib", "/.t1/bin/node"];
    const { stdout } = docker(
      ...["run", "--rm", "-v", `${volume}:/.t1:ro`, "--network", "none", image, ...node, "-p", "1 + 1"],
    );
    expect(stdout).toBe("2");
  });
});
