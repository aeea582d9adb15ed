// Faults that public projects had with commands and sandboxes, each under the name of its thread, in a container.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { capturedBytes, capturedText } from "../../../src/sandbox/captured-text.ts";
import { Engine } from "../../../src/sandbox/docker/engine.ts";
import { createDockerProvider, type DockerProvider } from "../../../src/sandbox/docker/provider.ts";
import type { ExecOptions, Sandbox, SandboxSpec } from "../../../src/sandbox/sandbox.ts";
import { importImage, noDocker, noImageHealthcheck } from "../docker-images.ts";

let provider: DockerProvider;
let shared: Sandbox;
let plain: string;
let count = 0;

function create(
  spec: Partial<SandboxSpec> = {},
  { lifeMs = 600_000, id = `cases/${process.pid}/${count++}` } = {},
) {
  const image = { kind: "docker", reference: plain, files: [] } as const;
  const defaults = { image, workdir: "/app", env: {}, network: "none", diskBytes: 32 << 20 } as const;
  return provider.create({ ...defaults, ...spec }, { id, generation: 1, deadlineMs: Date.now() + lifeMs });
}

const run = (command: string, options: Partial<ExecOptions> = {}, sandbox = shared) =>
  sandbox.exec(command, { timeoutMs: 60_000, ...options });

async function output(
  command: string,
  options: Partial<ExecOptions> = {},
  sandbox = shared,
): Promise<string> {
  const { end, stdout, stderr } = await run(command, options, sandbox);
  expect(end, `${command}: ${capturedText(stderr)}`).toEqual({ kind: "exited", exitCode: 0 });
  return capturedText(stdout);
}

const sleepers = async (sandbox = shared) =>
  (await output("cat /proc/[0-9]*/comm 2>/dev/null; true", {}, sandbox))
    .split("\n")
    .filter(name => name === "sleep");

const why = noDocker === undefined ? "" : ` (skipped: ${noDocker})`;
describe.skipIf(noDocker !== undefined)(`in a container${why}`, { timeout: 120_000 }, () => {
  beforeAll(async () => {
    plain = await importImage("t1-test/cases:1");
    provider = await createDockerProvider();
    shared = await create();
  }, 120_000);
  afterAll(() => provider[Symbol.asyncDispose](), 120_000);

  test("harbor#776: output is returned although a background child holds the pipe", async () => {
    const { stdout, durationMs } = await run("(sleep 300 &) ; echo hi");
    expect(capturedText(stdout)).toBe("hi\n");
    expect(durationMs).toBeLessThan(60_000);
    await shared.killAgents();
  });

  test("harbor#887, #1904: a keystroke of 20,000 bytes and one of 6,000 times é arrive whole", async () => {
    const terminal = await shared.terminal({ columns: 80, rows: 24 });
    for (const text of [`${"x".repeat(99)}\n`.repeat(200), `${"é".repeat(100)}\n`.repeat(60)]) {
      const keys = `cat > keys <<'EOF'\n${text}EOF\n`;
      expect(await terminal.send(keys)).toBe(Buffer.byteLength(keys));
      await expect.poll(() => output("cat keys 2>/dev/null; true"), { timeout: 30_000 }).toBe(text);
      await output("rm keys");
    }
    await terminal[Symbol.asyncDispose]();
  });

  test("mini-swe-agent#865, E2B#500: at the time limit nothing of the process group is left", async () => {
    const { end } = await run("sleep 30 & sleep 31; true", { timeoutMs: 1_000 });
    expect(end).toEqual({ kind: "timed-out", limitMs: 1_000 });
    expect(await sleepers()).toEqual([]);
  });

  test("E2B#500: a limit without end is cut at the lease's deadline", async () => {
    const short = await create({}, { lifeMs: 15_000 });
    const end = await run("sleep 300", { timeoutMs: Number.POSITIVE_INFINITY }, short).then(
      result => result.end.kind,
      error => error.name,
    );
    expect(["timed-out", "SandboxLost"]).toContain(end);
  });

  test("letta-evals#262: running out of time is neither an exit code nor success", async () => {
    expect((await run("sleep 9", { timeoutMs: 500 })).end).toEqual({ kind: "timed-out", limitMs: 500 });
  });

  test("SWE-ReX#281: a command that reads finds the end of its input at once", async () => {
    expect((await run("cat > f")).end).toEqual({ kind: "exited", exitCode: 0 });
  });

  test("SWE-ReX#159, daytona#4230: nested quotes, here-documents and case branches run as given", async () => {
    const command = `for w in "a b" 'c"d'; do case "$w" in a*) printf '%s;' "$w";; *) cat <<'EOF'\n$w \`x\`\nEOF\n;; esac; done`;
    expect(await output(command)).toBe("a b;$w `x`\n");
    expect(await output("cat <<'EOF' > f\nline $HOME\nEOF\ncat f")).toBe("line $HOME\n");
  });

  test("SWE-ReX#160, mini-swe-agent#761, SWE-ReX#201: bytes that are no text, escapes, NUL and spaces stay", async () => {
    const { stdout } = await run("printf '\\377\\376\\200 \\033[31mred\\000\\033[0m  a\\n\\n'");
    expect(Buffer.from(capturedBytes(stdout)).toString("latin1")).toBe(
      "\xff\xfe\x80 \x1b[31mred\0\x1b[0m  a\n\n",
    );
  });

  test("inspect#4658, mini-swe-agent#639: output is cut between characters, also when time cuts the command", async () => {
    const { stdout } = await run("printf 'x🎉🎉🎉🎉🎉🎉🎉🎉y'", { outputLimitBytes: 12 });
    expect(capturedText(stdout)).toBe("x🎉\n[… 24 bytes left out …]\n🎉y");
    const endless = await run("yes", { timeoutMs: 500, outputLimitBytes: 1_000 });
    expect(endless.end.kind).toBe("timed-out");
    expect(endless.stdout.head.length + endless.stdout.tail.length).toBe(1_000);
  });

  test("SWE-ReX#202, harbor#1744: commands start in the image's environment, whatever the one before exported", async () => {
    const reference = await importImage("t1-test/env:1", {
      changes: ["ENV PATH=/opt/tool:/bin", "ENV COLOUR=red", "WORKDIR /srv/work", "USER worker"],
      files: { "opt/tool/which-one": "#!/bin/sh\necho tool\n" },
    });
    const image = await provider.describeImage(reference);
    expect(image).toMatchObject({ workdir: "/srv/work", user: "worker" });
    const sandbox = await create({ image: { kind: "docker", reference, files: [] }, workdir: image.workdir });
    expect(
      await output("export COLOUR=blue; which-one; echo $COLOUR; pwd; id -un; echo $HOME", {}, sandbox),
    ).toBe("tool\nblue\n/srv/work\nworker\n/home/worker\n");
    expect(await output("echo $COLOUR; id -u", { user: "0" }, sandbox)).toBe("red\n0\n");
    expect(await output("id -u; id -g", { user: "1234:5678" }, sandbox)).toBe("1234\n5678\n");
    expect((await run("true", { user: "nobody-knows" }, sandbox)).end).toEqual({
      kind: "exited",
      exitCode: 126,
    });
    const terminal = await sandbox.terminal({ columns: 80, rows: 24 });
    await terminal.send("echo $COLOUR-$(id -un)-$PWD\n");
    await expect.poll(() => terminal.screen(), { timeout: 30_000 }).toContain("red-worker-/srv/work");
  });

  test("harbor#2200: pkill of the harness's programs and kill -9 -1 leave the sandbox usable", async () => {
    await run("pkill -f node; pkill -9 -f sandboxd; pkill ld.so; killall node; kill -9 1; kill -9 -1");
    expect(await output("echo ok")).toBe("ok\n");
  });

  test("a fork bomb ends at the limit of processes, and the sandbox goes on after killing", async () => {
    const sandbox = await create();
    await run("bomb() { bomb | bomb & }; bomb", { timeoutMs: 3_000 }, sandbox);
    await run("echo in between", { timeoutMs: 5_000 }, sandbox); // may fail, may not throw
    await sandbox.killAgents();
    expect(await output("echo ok", {}, sandbox)).toBe("ok\n");
  });

  test("cloudflare/sandbox-sdk#438: after a stuck command the next one runs", async () => {
    expect((await run("kill -STOP $$", { timeoutMs: 500 })).end.kind).toBe("timed-out");
    expect(await output("echo ok")).toBe("ok\n");
  });

  test("harbor#1317: a command that takes too much memory is killed, is told so once, and the sandbox lives", async () => {
    const sandbox = await create({ memoryBytes: 256 << 20 });
    const { end } = await run(
      "dd if=/dev/zero bs=1000M count=1 | tail -c 1000000000 > /dev/null",
      {},
      sandbox,
    );
    expect(end).not.toEqual({ kind: "timed-out", limitMs: 60_000 });
    const alone = await run("exec dd if=/dev/zero of=/dev/null bs=1000M count=1", {}, sandbox);
    expect(alone.end).toEqual({ kind: "signalled", signal: "SIGKILL" });
    expect(await output("echo ok", {}, sandbox)).toBe("ok\n");
  });

  test("memory that no process holds, taken to the last, breaks the sandbox: it is not lost", async () => {
    const sandbox = await create({ memoryBytes: 80 << 20, diskBytes: 1 << 30 });
    const fill = () =>
      run("tail /dev/zero; yes | head -c 20000000 >> /dev/shm/f", {}, sandbox).then(
        () => "alive",
        error => `${error}`,
      );
    await expect.poll(fill, { timeout: 100_000 }).toMatch(/^SandboxBroken.* out of memory$/);
  });

  test("a container that is killed from outside is lost, though memory had run out in it before", async () => {
    const id = `cases/both/${process.pid}`;
    const sandbox = await create({ memoryBytes: 256 << 20 }, { id });
    expect((await run("tail /dev/zero", {}, sandbox)).end).toEqual({ kind: "signalled", signal: "SIGKILL" });
    const engine = await Engine.open();
    const filters = encodeURIComponent(JSON.stringify({ label: [`t1.lease.id=${id}`] }));
    const { value } = await engine.call("GET", `/containers/json?filters=${filters}`);
    await engine.call("POST", `/containers/${(value as [{ Id: string }])[0].Id}/kill`);
    engine.close();
    await expect(run("true", {}, sandbox)).rejects.toMatchObject({ name: "SandboxLost" });
  });

  test("harbor#2051: memory and processors of the spec are the container's limits", async () => {
    const id = `cases/limits/${process.pid}`;
    const sandbox = await create({ memoryBytes: 512 << 20, cpus: 0.5 }, { id });
    const engine = await Engine.open();
    const filters = encodeURIComponent(JSON.stringify({ label: [`t1.lease.id=${id}`] }));
    const { value } = await engine.call("GET", `/containers/json?filters=${filters}`);
    const [{ Id }] = value as [{ Id: string }];
    const inspected = await engine.call("GET", `/containers/${Id}/json`);
    engine.close();
    expect(inspected.value).toMatchObject({
      HostConfig: {
        ...{ Memory: 512 << 20, MemorySwap: 512 << 20, NanoCpus: 5e8, NetworkMode: "none", PidsLimit: 2048 },
        Privileged: false,
      },
    });
    // chown, dac_override, fowner, fsetid, kill, setgid, setuid (0, 1, 3-7), net_bind_service (10), sys_chroot (18).
    expect(await output("grep -E 'CapBnd|NoNewPrivs' /proc/self/status", {}, sandbox)).toBe(
      "CapBnd:\t00000000000404fb\nNoNewPrivs:\t1\n",
    );
  });

  test("a file that would fill the disk ends at the limit, and the sandbox goes on", async () => {
    const sandbox = await create({ diskBytes: 4 << 20 });
    const { end } = await run("yes > big", { timeoutMs: 60_000 }, sandbox);
    expect(end.kind).not.toBe("timed-out");
    expect(Number(await output("wc -c < big", {}, sandbox))).toBe(4 << 20);
    const small = await create({ diskBytes: 1 << 20 });
    expect(await small.upload(tarOf({ large: "x".repeat(2 << 20) }), "/app")).toHaveProperty("refused");
    expect(await output("rm -f large; echo ok", {}, small)).toBe("ok\n");
  });

  test("SWE-ReX#278, harbor#2166: what is disposed of is gone, though it ran, and though it was gone already", async () => {
    const id = `cases/gone/${process.pid}`;
    const sandbox = await create({}, { id });
    await run("sleep 300 &", {}, sandbox);
    const engine = await Engine.open();
    const filters = encodeURIComponent(JSON.stringify({ label: [`t1.lease.id=${id}`] }));
    const listed = async () =>
      (await engine.call("GET", `/containers/json?all=true&filters=${filters}`)).value as readonly {
        Id: string;
      }[];
    const [container] = await listed();
    await engine.call("DELETE", `/containers/${container?.Id}?force=true`);
    await expect(run("true", {}, sandbox)).rejects.toMatchObject({
      name: "SandboxLost",
      message: expect.stringMatching(/container is gone|(killed|ended) from outside/),
    });
    await sandbox[Symbol.asyncDispose]();
    expect(await listed()).toEqual([]);
    engine.close();
  });

  test("NeMo Evaluator#1066: why a container died is told to all its callers, with its exit code", async () => {
    const id = `cases/killed/${process.pid}`;
    const sandbox = await create({}, { id });
    const told = [run("sleep 300", {}, sandbox), run("sleep 301", {}, sandbox)].map(running =>
      expect(running).rejects.toMatchObject({
        name: "SandboxLost",
        message: expect.stringMatching(/code 137.*killed from outside/),
      }),
    );
    const engine = await Engine.open();
    const filters = encodeURIComponent(JSON.stringify({ label: [`t1.lease.id=${id}`] }));
    const { value } = await engine.call("GET", `/containers/json?filters=${filters}`);
    await engine.call("POST", `/containers/${(value as [{ Id: string }])[0].Id}/kill`);
    engine.close();
    await Promise.all(told);
  });

  test("harbor#1545: an entry point that seeds a file and runs its command is honoured", async () => {
    const reference = await importImage("t1-test/entry:1", {
      changes: ['ENTRYPOINT ["/init.sh"]'],
      files: { "init.sh": '#!/bin/sh\necho seeded > /seed\nexec "$@"\n' },
    });
    const sandbox = await create({ image: { kind: "docker", reference, files: [] } });
    expect(await output("cat /seed", {}, sandbox)).toBe("seeded\n");
  });

  test("harbor#1545: an entry point that ends well leaves the sandbox alive, one that fails is the image's fault", async () => {
    const [ends, fails] = await Promise.all([
      importImage("t1-test/ends:1", {
        changes: ['ENTRYPOINT ["/init.sh"]'],
        files: { "init.sh": "#!/bin/sh\necho seeded > /seed\n" },
      }),
      importImage("t1-test/fails:1", { changes: ['ENTRYPOINT ["/bin/ls", "/no/such"]'] }),
    ]);
    const sandbox = await create({ image: { kind: "docker", reference: ends, files: [] } });
    expect(await output("cat /seed", {}, sandbox)).toBe("seeded\n");
    await expect(create({ image: { kind: "docker", reference: fails, files: [] } })).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(/entry point fails[\s\S]*ls: /),
    });
  });

  const noHealthcheck = noImageHealthcheck === undefined ? "" : ` (skipped: ${noImageHealthcheck})`;
  test.skipIf(noHealthcheck !== "")(`an image's health check is waited for${noHealthcheck}`, async () => {
    const reference = await importImage("t1-test/health:1", {
      changes: ['ENTRYPOINT ["/init.sh"]', "HEALTHCHECK --interval=1s --retries=60 CMD test -e /ready"],
      files: { "init.sh": '#!/bin/sh\n(sleep 2; echo > /ready) &\nexec "$@"\n' },
    });
    const sandbox = await create({ image: { kind: "docker", reference, files: [] } });
    expect(await output("ls /ready", {}, sandbox)).toBe("/ready\n");
  });

  test("harbor#2543: a tag that was moved to another image makes sandboxes of that one", async () => {
    const make = (text: string) => importImage("t1-test/moved:1", { files: { version: text } });
    const spec = { image: { kind: "docker", reference: await make("one"), files: [] } } as const;
    const first = await create(spec);
    await make("two");
    expect(await output("cat /version", {}, first)).toBe("one");
    expect(await output("cat /version", {}, await create(spec))).toBe("two");
  });

  test("an image that was removed and is there anew has the same files, none of which has changed", async () => {
    const spec = {
      image: { kind: "docker", reference: await importImage("t1-test/anew:1"), files: [] },
    } as const;
    const sandbox = await create(spec);
    await sandbox[Symbol.asyncDispose]();
    const folder = mkdtempSync(join(tmpdir(), "t1-anew-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const docker = (...words: string[]) => execFileSync("docker", words, { encoding: "utf8" });
    const id = () => docker("image", "inspect", "--format", "{{.Id}}", "t1-test/anew:1");
    const before = id();
    docker("save", "--output", join(folder, "image"), "t1-test/anew:1");
    docker("rmi", "t1-test/anew:1");
    docker("load", "--input", join(folder, "image"));
    expect(id()).toBe(before);
    expect(await (await create(spec)).changedFiles()).toEqual([]);
  });

  test("verifiers#2236: files of the task lie where the task says", async () => {
    const folder = mkdtempSync(join(tmpdir(), "t1-files-"));
    writeFileSync(join(folder, "data.csv"), "1,2\n");
    const files = [{ from: join(folder, "data.csv"), to: "/app/data.csv" }];
    const sandbox = await create({ image: { kind: "docker", reference: plain, files } });
    rmSync(folder, { recursive: true });
    expect(await output("cat data.csv", {}, sandbox)).toBe("1,2\n");
  });

  test("marimohub#309: the same lease and generation is the same sandbox, asked for twice at once", async () => {
    const id = `cases/twice/${process.pid}`;
    const [one, two] = await Promise.all([create({}, { id }), create({}, { id })]);
    await output("echo 1 > f", {}, one);
    expect(await output("cat f", {}, two)).toBe("1\n");
  });

  test("harbor#2262: a lease without time left makes no sandbox, and not one that lives for ever", async () => {
    await expect(create({}, { lifeMs: 0 })).rejects.toMatchObject({ name: "SandboxLost" });
    await expect(create({}, { lifeMs: Number.NaN })).rejects.toMatchObject({ name: "SandboxLost" });
  });

  test("an image that the engine does not have is named, with what to do", async () => {
    const image = { kind: "docker", reference: "t1-test/none:1", files: [] } as const;
    await expect(create({ image })).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringContaining("docker pull t1-test/none:1"),
    });
  });
});

function tarOf(files: Readonly<Record<string, string>>): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), "t1-tar-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const tar = execFileSync("tar", ["-C", folder, "-c", "."], { maxBuffer: 64 << 20 });
  rmSync(folder, { recursive: true });
  return tar;
}
