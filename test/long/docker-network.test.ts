// Tests the reach of a container in each kind of network. An engine of its own with a bridge runs on a made-up host
// between a made-up world and its own loopback, all in network namespaces. Needs root, iproute2, iptables and dockerd.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { capturedText } from "../../src/sandbox/captured-text.ts";
import { createDockerProvider, type DockerProvider } from "../../src/sandbox/docker/provider.ts";
import type { Sandbox, SandboxSpec } from "../../src/sandbox/sandbox.ts";
import { importImage } from "../sandbox/docker-images.ts";
import { hasBusybox } from "../sandbox/local-daemon.ts";

const MACHINE = `t1-machine-${process.pid}`;
const WORLD = `t1-world-${process.pid}`;
/** Addresses of the world (RFC 5737, RFC 3849), of the clouds' credential servers, and of the host. */
const SERVERS = {
  world: "203.0.113.1",
  world6: "2001:db8::1",
  metadata: "169.254.169.254",
  amazon6: "fd00:ec2::254",
  google6: "fd20:ce::254",
  loopback: "127.0.0.1",
} as const;
const WORLD_ONLY = ["world", "world6"];
const CONTAINERS_6 = "fd00:c::/64";

/** Why it is left out here. */
function problem(): string | undefined {
  if (process.getuid?.() !== 0) return "it wants root";
  if (!hasBusybox) return "no busybox";
  for (const program of ["ip", "iptables", "nsenter", "dockerd"])
    if (spawnSync(program, ["--version"]).error !== undefined) return `no ${program}`;
  const { status } = spawnSync("ip", ["netns", "add", MACHINE]);
  if (status !== 0) return "no network namespaces";
  const nat = spawnSync("ip", ["netns", "exec", MACHINE, "iptables", "-t", "nat", "-L"]);
  spawnSync("ip", ["netns", "del", MACHINE]);
  return nat.status === 0 ? undefined : "no NAT in a network namespace";
}
const missing = problem();
const why = missing === undefined ? "" : ` (skipped: ${missing})`;

const ip = (...words: string[]) => execFileSync("ip", words);

describe.skipIf(missing !== undefined)(`a container's network${why}`, { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-net-"));
  const socketPath = join(folder, "docker.sock");
  const started: ChildProcess[] = [];
  const { DOCKER_HOST } = process.env;
  let provider: DockerProvider;
  let count = 0;

  const startIn = (namespace: string, ...words: string[]): ChildProcess => {
    // Do not use `ip netns exec`: its new /sys has no control groups.
    const child = spawn("nsenter", [`--net=/run/netns/${namespace}`, ...words], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    started.push(child);
    return child;
  };

  async function serve(namespace: string, address: string): Promise<void> {
    const program = `require("node:http").createServer((_, answer) => answer.end("reached")).listen(80, "${address}", () => console.log("up"))`;
    const { stdout } = startIn(namespace, process.execPath, "-e", program);
    if (stdout !== null) await once(stdout, "data");
  }

  beforeAll(async () => {
    for (const namespace of [MACHINE, WORLD]) {
      ip("netns", "add", namespace);
      ip("-n", namespace, "link", "set", "lo", "up");
    }
    ip("-n", MACHINE, "link", "add", "uplink", "type", "veth", "peer", "name", "downlink", "netns", WORLD);
    ip("-n", MACHINE, "address", "add", "203.0.113.2/24", "dev", "uplink");
    ip("-n", MACHINE, "address", "add", "2001:db8::2/64", "dev", "uplink", "nodad");
    for (const address of [`${SERVERS.world}/24`, `${SERVERS.metadata}/32`])
      ip("-n", WORLD, "address", "add", address, "dev", "downlink");
    for (const address of [`${SERVERS.world6}/64`, `${SERVERS.amazon6}/128`, `${SERVERS.google6}/128`])
      ip("-n", WORLD, "address", "add", address, "dev", "downlink", "nodad");
    ip("-n", MACHINE, "link", "set", "uplink", "up");
    ip("-n", WORLD, "link", "set", "downlink", "up");
    ip("-n", MACHINE, "route", "add", "default", "via", SERVERS.world);
    ip("-n", MACHINE, "-6", "route", "add", "default", "via", SERVERS.world6);
    ip("-n", WORLD, "-6", "route", "add", CONTAINERS_6, "via", "2001:db8::2");
    const { loopback, ...others } = SERVERS;
    for (const address of Object.values(others)) await serve(WORLD, address);
    await serve(MACHINE, loopback);
    const folders = ["data", "exec"].flatMap(name => [`--${name}-root`, join(folder, name)]);
    startIn(
      MACHINE,
      // Its mounts go with it.
      ...["unshare", "--mount", "dockerd"],
      ...folders,
      ...["--ipv6", "--fixed-cidr-v6", CONTAINERS_6],
      "--pidfile",
      join(folder, "pid"),
      "--host",
      `unix://${socketPath}`,
    );
    await vi.waitUntil(() => existsSync(socketPath), { timeout: 60_000 });
    process.env.DOCKER_HOST = `unix://${socketPath}`;
    await importImage("t1-test/network:1");
    provider = await createDockerProvider({ socketPath });
  }, 120_000);
  afterAll(async () => {
    await provider?.[Symbol.asyncDispose]();
    if (DOCKER_HOST === undefined) delete process.env.DOCKER_HOST;
    else process.env.DOCKER_HOST = DOCKER_HOST;
    for (const child of started.reverse()) {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    }
    for (const namespace of [MACHINE, WORLD]) ip("netns", "del", namespace);
    rmSync(folder, { recursive: true, force: true });
  }, 120_000);

  const create = (network: SandboxSpec["network"]): Promise<Sandbox> =>
    provider.create(
      {
        image: { kind: "docker", reference: "t1-test/network:1", files: [] },
        ...{ workdir: "/app", env: {}, network, diskBytes: 8 << 20 },
      },
      { id: `network/${process.pid}/${count++}`, generation: 1, deadlineMs: Date.now() + 600_000 },
    );
  const output = async (sandbox: Sandbox, command: string): Promise<string> =>
    capturedText((await sandbox.exec(command, { timeoutMs: 60_000 })).stdout);
  const reached = async (sandbox: Sandbox): Promise<readonly string[]> => {
    const all = Object.entries(SERVERS).map(async ([name, address]) =>
      (await output(sandbox, `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 ${address} 80`)).endsWith(
        "reached",
      )
        ? [name]
        : [],
    );
    return (await Promise.all(all)).flat();
  };

  test("none has nothing but its own loopback", async () => {
    const sandbox = await create("none");
    expect(await output(sandbox, "ls /sys/class/net")).toBe("lo\n");
    expect(await reached(sandbox)).toEqual([]);
  });

  test("public reaches the world, and neither the machine's loopback nor what tells its credentials", async () => {
    const sandbox = await create("public");
    expect(await reached(sandbox)).toEqual(WORLD_ONLY);
    // Root inside can change neither that nor its rights.
    const change =
      "ip route del 169.254.0.0/16; ip -6 route del fd00:ec2::/32; ip route replace default via 172.17.0.1; ip link set eth0 down";
    expect((await sandbox.exec(change, { timeoutMs: 60_000 })).end).not.toEqual({
      kind: "exited",
      exitCode: 0,
    });
    expect(await output(sandbox, "grep -h Cap /proc/1/status /proc/self/status | grep -E 'Eff|Bnd'")).toBe(
      ["CapEff", "CapBnd", "CapEff", "CapBnd"].map(name => `${name}:\t00000000000404fb\n`).join(""),
    );
    expect(await reached(sandbox)).toEqual(WORLD_ONLY);
  });

  test("public is a successor's where the agent had none, and the other way round", async () => {
    const lease = () => ({ id: `network/${count++}`, generation: 1, deadlineMs: Date.now() + 600_000 });
    for (const [from, to, reaches] of [
      ["none", "public", WORLD_ONLY],
      ["public", "none", []],
    ] as const) {
      const next = await (await create(from)).successor(lease(), { without: [], network: to });
      if ("refused" in next) throw new Error(next.refused);
      expect(await reached(next)).toEqual(reaches);
    }
  });

  test("host has this machine's, with its loopback and all that it reaches", async () => {
    expect(await reached(await create("host"))).toEqual(Object.keys(SERVERS));
  });
});
