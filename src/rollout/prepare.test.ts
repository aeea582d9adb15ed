import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeTaskFolder } from "../../test/task/folder.ts";
import { type Images, readImages } from "../image/images-file.ts";
import { type BubblewrapProvider, createBubblewrapProvider } from "../sandbox/bubblewrap/provider.ts";
import { createRootBuilder } from "../sandbox/bubblewrap/root-builder.ts";
import { capturedText } from "../sandbox/captured-text.ts";
import type { SandboxSpec } from "../sandbox/sandbox.ts";
import { awaitHealthy } from "./healthcheck.ts";
import { inPhase } from "./phase-network.ts";
import { prepareTask } from "./prepare.ts";

const NO_NETWORK = '[environment]\nnetwork_mode = "no-network"\n';
const HOST_FILE = { "environment/Dockerfile": "FROM x AS t1-host\nWORKDIR /work\n" };

let provider: BubblewrapProvider;
beforeAll(() => {
  provider = createBubblewrapProvider();
});
afterAll(() => provider[Symbol.asyncDispose]());

function prepareFolder(toml: string, files = {}, more: Partial<Images> = {}) {
  const images = { ...readImages(undefined), ...more };
  const builder = createRootBuilder(images, provider);
  return prepareTask(makeTaskFolder(toml, files), { images, builder, demonstration: false });
}

describe("a task", () => {
  test("that says so takes this machine's programs; every other needs an image", async () => {
    const { spec } = await prepareFolder(NO_NETWORK, HOST_FILE);
    expect(spec).toMatchObject({ image: { kind: "host" }, workdir: "/work", network: "none" });
    await expect(prepareFolder(NO_NETWORK)).rejects.toThrow(
      /nothing on this machine stands for the image x: .*Dockerfile:1: .*--images/,
    );
  });

  test.each([
    ["runs several containers", NO_NETWORK, { "environment/docker-compose.yaml": "services: {}" }],
    ["wants a GPU", `${NO_NETWORK}gpus = 1\n`, HOST_FILE],
    ["wants the agent to be user app", `${NO_NETWORK}[agent]\nuser = "app"\n`, HOST_FILE],
    ["wants the verifier to be user 1000", `${NO_NETWORK}[verifier]\nuser = 1000\n`, HOST_FILE],
    ["wants network access for the agent (public)", "", HOST_FILE],
    [
      "wants network access for the verifier (allowlist)",
      `${NO_NETWORK}[verifier]\nnetwork_mode = "allowlist"\nallowed_hosts = ["pypi.org"]\n`,
      HOST_FILE,
    ],
  ])("is refused when it %s", async (what, toml, files) => {
    await expect(prepareFolder(toml, files)).rejects.toThrow(`the task ${what}`);
  });

  test("that wants the network gets what the images file says, and never more than it asked for", async () => {
    const none = { network: "none", env: {} } as const;
    const host = { network: "host", env: { PROXY: "p" } } as const;
    const mixed = await prepareFolder("", HOST_FILE, { agent: none, verifier: host });
    expect(mixed).toMatchObject({
      steps: [{ networks: { agent: none, verifier: host } }],
      spec: { network: "host" },
    });
    const closed = await prepareFolder(NO_NETWORK, HOST_FILE, { agent: host, verifier: host });
    expect(closed).toMatchObject({
      steps: [{ networks: { agent: { network: "none" } } }],
      spec: { network: "none" },
    });
    const listed = '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["pypi.org"]\n';
    await prepareFolder(listed, HOST_FILE, { agent: none, verifier: none });
    await expect(prepareFolder(listed, HOST_FILE, { agent: host, verifier: host })).rejects.toThrow(
      /\(allowlist\).*all of its network or none/,
    );
  });
});

describe("in a sandbox", () => {
  const spec: SandboxSpec = {
    image: { kind: "host", files: [] },
    workdir: "/app",
    env: {},
    network: "host",
    diskBytes: 4 << 20,
  };
  const lease = (id: string) => ({ id, generation: 1, deadlineMs: Date.now() + 60_000 });

  test("a phase with network has its variables, behind those of the command", async () => {
    await using sandbox = await provider.create(spec, lease("phase"));
    const phase = inPhase(sandbox, { network: "host", env: { A: "phase", B: "phase" } });
    const { stdout } = await phase.exec("echo $A $B", { timeoutMs: 5000, env: { B: "own" } });
    expect(capturedText(stdout)).toBe("phase own\n");
    expect(inPhase(sandbox, { network: "none", env: { A: "unseen" } })).toBe(sandbox);
  });

  test("health is waited for, and given up with what was said last", async () => {
    await using sandbox = await provider.create(spec, lease("health"));
    const check = { intervalMs: 10, timeoutMs: 5000, startPeriodMs: 0, startIntervalMs: 10, retries: 3 };
    const count = "echo x >> n; [ $(wc -l < n) -ge 3 ]";
    expect(await awaitHealthy(sandbox, { ...check, command: count })).toBeUndefined();
    expect(await awaitHealthy(sandbox, { ...check, command: "echo sick; exit 1" })).toContain("sick");
    const starting = {
      ...check,
      startPeriodMs: 60_000,
      retries: 1,
      command: "echo x >> m; [ $(wc -l < m) -ge 5 ]",
    };
    expect(await awaitHealthy(sandbox, starting)).toBeUndefined();
  });
});
