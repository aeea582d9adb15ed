// What images need of sandboxes: layers over a root, changes that are kept, owners, a network by choice, an entrypoint.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeRootFolder } from "../../../test/sandbox/root-folder.ts";
import { capturedText } from "../captured-text.ts";
import type { ExecOptions, RootImage, Sandbox, SandboxSpec } from "../sandbox.ts";
import { type BubblewrapProvider, createBubblewrapProvider } from "./provider.ts";
import { sandboxUser } from "./sandbox-user.ts";

const parent = mkdtempSync(join(tmpdir(), "t1-layers-"));
const folder = join(parent, "root");
let provider: BubblewrapProvider;
let count = 0;

beforeAll(() => {
  chmodSync(parent, 0o755);
  makeRootFolder(folder);
  provider = createBubblewrapProvider();
});
afterAll(async () => {
  await provider[Symbol.asyncDispose]();
  // The kernel closes the work folder of an overlay, to its owner too.
  execFileSync("chmod", ["-R", "u+rwx", parent]);
  rmSync(parent, { recursive: true, force: true });
});

function create(image: Partial<RootImage>, spec: Partial<SandboxSpec> = {}) {
  const whole: SandboxSpec = {
    image: { kind: "root", folder, files: [], ...image },
    workdir: "/app",
    env: {},
    network: "none",
    diskBytes: 4 << 20,
    ...spec,
  };
  return provider.create(whole, { id: `layer/${count++}`, generation: 1, deadlineMs: Date.now() + 60_000 });
}

async function output(sandbox: Sandbox, command: string, options: Partial<ExecOptions> = {}) {
  const { stdout, stderr } = await sandbox.exec(command, { timeoutMs: 10_000, ...options });
  return capturedText(stdout) + capturedText(stderr);
}

/** Runs a command over layers and returns what it changed, as one more layer. */
async function layer(command: string, layers: readonly string[]): Promise<string> {
  const changes = join(parent, `changes, with: odd=name ${count}`);
  for (const path of [changes, join(changes, "upper"), join(changes, "work")]) {
    mkdirSync(path);
    const user = sandboxUser();
    if (user !== undefined) chownSync(path, user.uid, user.gid);
  }
  await using sandbox = await create({ layers, changes });
  expect(await output(sandbox, command)).toBe("");
  return join(changes, "upper");
}

test("layers go over each other with all that they add, change and remove", async () => {
  const first = await layer("mkdir -p d/old; echo 1 > d/a; echo 1 > d/old/b; echo 1 > gone; rm /bin/yes", []);
  const second = await layer("rm gone; rm -r d/old; echo 2 > d/a; mkdir d/old; echo 2 > d/old/c", [first]);
  const third = await layer("rm -r d; mkdir d; echo 3 > d/new", [second, first]);
  const look =
    "for f in d/* d/old/* gone; do [ -f $f ] && printf '%s=%s ' $f $(cat $f); done; [ -e /bin/yes ] || printf -";
  await using one = await create({ layers: [first] });
  expect(await output(one, look)).toBe("d/a=1 d/old/b=1 gone=1 -");
  await using two = await create({ layers: [second, first] });
  expect(await output(two, look)).toBe("d/a=2 d/old/c=2 -");
  await using three = await create({ layers: [third, second, first] });
  expect(await output(three, look)).toBe("d/new=3 -");
  await using base = await create({});
  expect(await output(base, look)).toBe("");
});

test("a hundred layers are one root", async () => {
  const layers = Array.from({ length: 100 }, (_, index) => {
    const path = join(parent, `hundred-${index}`);
    mkdirSync(join(path, "app"), { recursive: true });
    writeFileSync(join(path, "app", `${index}`), "");
    return path;
  });
  await using sandbox = await create({ layers });
  expect(await output(sandbox, "set -- *; echo $#")).toBe("100\n");
});

test("kept changes lie on the disk when the sandbox has ended, and the image stays as it is", async () => {
  const kept = await layer("echo x > /etc/new; rm /bin/yes", []);
  expect(readFileSync(join(kept, "etc/new"), "utf8")).toBe("x\n");
  expect(lstatSync(join(kept, "bin/yes")).isCharacterDevice()).toBe(true);
  expect(existsSync(join(folder, "bin/yes"))).toBe(true);
});

test("a file of an image can be given to anybody, to no effect", async () => {
  await using sandbox = await create({});
  expect(await output(sandbox, "touch f && chown 1000:50 f && chown -R 7 . && ls -n f")).toMatch(/ 0 +0 +0 /);
  expect(await output(sandbox, "chmod 640 f && ls -n f")).toMatch(/^-rw-r-----/);
});

test("only a command that asks for it has this machine's network", async () => {
  const server = createServer((_, response) => response.end("hello"));
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  try {
    // Of the programs in the image none can open a connection; the table of listening sockets tells as much.
    const hex = port?.toString(16).toUpperCase().padStart(4, "0");
    const look = `grep -c ':${hex} ' /proc/self/net/tcp || true`;
    await using sandbox = await create({}, { network: "host" });
    expect(await output(sandbox, look)).toBe("0\n");
    expect(await output(sandbox, look, { network: "host" })).not.toBe("0\n");
    expect(await output(sandbox, look)).toBe("0\n");
    for (const [network, expected] of [
      [undefined, /^(# )?0$/m],
      ["host", /^(# )?[1-9]\d*$/m],
    ] as const) {
      await using terminal = await sandbox.terminal({ columns: 80, rows: 5, ...(network && { network }) });
      await terminal.send(`${look}\n`);
      await expect.poll(async () => (await terminal.screen()).slice(1).join("\n")).toMatch(expected);
    }
    await using closed = await create({});
    await expect(output(closed, look, { network: "host" })).rejects.toThrow("no network to give");
  } finally {
    server.close();
  }
});

test("an entrypoint has done its work before the first command, and lives on with it", async () => {
  const script = 'sleep 0.3; echo "$A in $PWD" > seeded; exec "$@"';
  const entrypoint = ["/bin/sh", "-c", script, "entrypoint"];
  await using sandbox = await create({ entrypoint }, { env: { A: "seed" } });
  expect(await output(sandbox, "cat seeded; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).toMatch(
    /^seed in \/app\n.*sleep infinity/,
  );
});

test("an entrypoint that ends at once, or is missing, leaves a sandbox that works", async () => {
  for (const entrypoint of [["/bin/sh", "-c", "echo no; exit 3"], ["/nothing"]]) {
    await using sandbox = await create({ entrypoint });
    expect(await output(sandbox, "echo ok")).toBe("ok\n");
  }
});
