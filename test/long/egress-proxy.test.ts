// The proxy's container with the real squid: what it lets out and what it does not. It needs no network: an allowed name
// that nobody knows is tried and not found (503), all else is refused (403).
//
//   T1_PROXY_BASE_IMAGE   a Debian or Ubuntu image with apt, and a network to its mirror; without it nothing is built
import { execFileSync } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const base = process.env.T1_PROXY_BASE_IMAGE;
const ROOT = join(import.meta.dirname, "../..");
const why = base === undefined ? " (skipped: T1_PROXY_BASE_IMAGE names no image)" : "";

function status(method: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port: 3128, method, path, agent: false });
    asked.once("response", response => resolve(response.resume().statusCode));
    asked.once("connect", (response, socket) => {
      socket.destroy();
      resolve(response.statusCode);
    });
    asked.once("error", reject);
    asked.end();
  });
}

describe.skipIf(base === undefined)(`the way out${why}`, () => {
  let id = "";
  beforeAll(async () => {
    const docker = (...args: readonly string[]) => execFileSync("docker", args, { encoding: "utf8" }).trim();
    docker(
      ...["build", "--quiet", "--network", "host", "--file", "containers/egress-proxy/Dockerfile"],
      ...["--build-arg", `BASE_IMAGE=${base}`, "--tag", "t1-test/egress-proxy:1", ROOT],
    );
    const domains = "T1_ALLOWED_DOMAINS=.allowed.invalid,exact.invalid,localhost";
    id = docker("run", "--detach", "--network", "host", "--env", domains, "t1-test/egress-proxy:1");
    while ((await status("GET", "http://exact.invalid/").catch(() => undefined)) === undefined)
      await sleep(200);
  });
  afterAll(() => {
    if (id !== "") execFileSync("docker", ["rm", "--force", id]);
  });

  test.each<[string, string, number]>([
    ["GET", "http://exact.invalid/", 503],
    ["GET", "http://deep.allowed.invalid/", 503],
    ["CONNECT", "exact.invalid:443", 503],
    ["GET", "http://below.exact.invalid/", 403],
    ["GET", "http://exact.invalid.other.invalid/", 403],
    ["GET", "http://other.invalid/", 403],
    ["CONNECT", "other.invalid:443", 403],
    ["CONNECT", "exact.invalid:22", 403],
    ["CONNECT", "exact.invalid:80", 403],
    ["GET", "http://exact.invalid:8080/", 403],
    // Addresses, and a name that leads inside.
    ["GET", "http://127.0.0.1/", 403],
    ["GET", "http://169.254.169.254/latest/meta-data/", 403],
    ["CONNECT", "10.0.0.1:443", 403],
    ["GET", "http://localhost/", 403],
  ])("%s %s is answered %d", async (method, path, expected) => {
    expect(await status(method, path)).toBe(expected);
  });
});
