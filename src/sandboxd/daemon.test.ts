import { spawn } from "node:child_process";
import { once } from "node:events";
import { createConnection } from "node:net";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, test } from "vitest";
import {
  hasBusybox,
  type LocalDaemon,
  startLocalDaemon,
  toolkitForTests,
} from "../../test/sandbox/local-daemon.ts";
import { capturedText } from "../sandbox/captured-text.ts";
import type { Terminal } from "../sandbox/sandbox.ts";
import { DaemonClient } from "./client.ts";
import { FrameStream } from "./frame-stream.ts";
import { greetDaemon, makeToken } from "./handshake.ts";
import { clientKeyOptions } from "./pre-shared-key.ts";

const PATIENCE = { timeout: 10_000 };
const daemons: LocalDaemon[] = [];

afterEach(async () => {
  await Promise.all(daemons.splice(0).map(daemon => daemon[Symbol.asyncDispose]()));
});

async function start(...args: Parameters<typeof startLocalDaemon>): Promise<LocalDaemon> {
  const daemon = await startLocalDaemon(...args);
  daemons.push(daemon);
  return daemon;
}

async function output({ sandbox }: Pick<LocalDaemon, "sandbox">, command: string): Promise<string> {
  const { end, stdout, stderr } = await sandbox.exec(command, { timeoutMs: 20_000 });
  expect(end, capturedText(stderr)).toEqual({ kind: "exited", exitCode: 0 });
  return capturedText(stdout);
}

/** As one text: what is typed ahead of a prompt is answered behind it, on the same line. */
async function shownBy(terminal: Terminal): Promise<string> {
  return (await terminal.screen()).join("\n");
}

const why = hasBusybox ? "" : " (skipped: no busybox)";
test.skipIf(!hasBusybox)(`it needs nothing of an image whose only program is /bin/sh${why}`, async () => {
  const daemon = await start("busybox");
  expect(await output(daemon, "echo hi; echo $$")).toMatch(/^hi\n\d+\n$/);
  expect(await output(daemon, "busybox ls -A /")).toBe(".t1\napp\nbin\ndev\nproc\ntmp\n");
  const terminal = await daemon.sandbox.terminal({ columns: 80, rows: 10 });
  await terminal.send("echo to$((1+1))\n");
  await expect.poll(() => shownBy(terminal), PATIENCE).toContain("to2");
});

describe("a cut connection", () => {
  test("after a command was sent does not run it twice, nor lose it (harbor#1941)", async () => {
    const daemon = await start();
    const running = output(daemon, "echo x >> f; sleep 0.5; echo done");
    await expect.poll(() => output(daemon, "cat f 2>/dev/null; true"), PATIENCE).toBe("x\n");
    daemon.stream().close();
    expect(await running).toBe("done\n");
    expect(await output(daemon, "cat f")).toBe("x\n");
    expect(daemon.listener.welcomeCount).toBe(2);
  });

  test("with twenty commands in flight is made up by one connection, and each runs once (NeMo Evaluator#1066)", async () => {
    const daemon = await start();
    const numbers = Array.from({ length: 20 }, (_, index) => index);
    const running = Promise.all(numbers.map(n => output(daemon, `echo ${n} >> all; sleep 0.3; echo ${n}`)));
    daemon.stream().close();
    expect(await running).toEqual(numbers.map(n => `${n}\n`));
    const lines = (await output(daemon, "cat all")).trim().split("\n").map(Number);
    expect(lines.toSorted((a, b) => a - b)).toEqual(numbers);
    expect(daemon.listener.welcomeCount).toBe(2);
  });

  test("leaves terminals as they are", async () => {
    const daemon = await start();
    const terminal = await daemon.sandbox.terminal({ columns: 80, rows: 10 });
    await terminal.send("LEFT=over\n");
    daemon.stream().close();
    await terminal.send("echo is-$LEFT\n");
    await expect.poll(() => shownBy(terminal), PATIENCE).toContain("is-over");
  });
});

describe("a second driver", () => {
  test("finds a running command by its id and reads on from an offset (E2B#1074)", async () => {
    const first = await start();
    const lost = first.sandbox.exec(
      "echo before; while ! cat go 2>/dev/null; do sleep 0.05; done; echo after",
      {
        ...{ timeoutMs: 20_000, requestId: "turn-1" },
      },
    );
    lost.catch(() => undefined);
    const attach = (client: DaemonClient, stdoutOffset: number, waitMs: number) =>
      client.call({ op: "attach", requestId: "turn-1", stdoutOffset, stderrOffset: 0, waitMs });
    const early = async () => Buffer.from((await attach(first.client, 0, 100)).body).toString();
    await expect.poll(early, PATIENCE).toBe("before\n");
    const second = await first.takeOver();
    daemons.push(second);
    await expect(lost).rejects.toThrow("this driver is gone");
    await output(second, "echo going > go");
    const { value, body } = await attach(second.client, 7, 10_000);
    expect(Buffer.from(body).toString()).toBe("going\nafter\n");
    expect(value).toMatchObject({
      end: { kind: "exited", exitCode: 0 },
      stdout: { nextOffset: 19, omittedBytes: 0 },
    });
    const again = await second.sandbox.exec(
      "echo before; while ! cat go 2>/dev/null; do sleep 0.05; done; echo after",
      { timeoutMs: 20_000, requestId: "turn-1" },
    );
    expect(capturedText(again.stdout)).toBe("before\ngoing\nafter\n");
    expect(
      (
        await second.client.call({
          op: "attach",
          requestId: "no",
          stdoutOffset: 0,
          stderrOffset: 0,
          waitMs: 0,
        })
      ).value,
    ).toEqual({ unknown: true });
  });

  test("without the token is sent away, and so is whoever plays the daemon", async () => {
    const daemon = await start();
    const path = join(daemon.listenerFolder, "s");
    const stranger = new FrameStream(createConnection(path));
    stranger.send({ kind: "hello", version: 1, nonce: makeToken(), isFresh: true });
    expect(await stranger.next()).toBeUndefined();
    const guesser = new FrameStream(createConnection(path));
    guesser.send({ kind: "hello", version: 1, nonce: makeToken(), isFresh: false });
    expect(await guesser.next()).toHaveProperty("header.kind", "hello");
    guesser.send({ kind: "welcome", proof: makeToken() });
    expect(await guesser.next()).toBeUndefined();
    expect(await output(daemon, "echo ok")).toBe("ok\n");
    expect(daemon.listener.welcomeCount).toBe(1);
  });
});

describe("whatever commands do", () => {
  test("the daemon outlives kill -9 -1, kill of process 1 and its own name (harbor#2200)", async () => {
    const daemon = await start();
    const signals = "kill -9 1; kill -TERM 1; kill -INT 1; kill -USR1 1; kill -STOP 1; kill -9 -1";
    await daemon.sandbox.exec(`sleep 60 & ${signals}`, { timeoutMs: 20_000 });
    expect(await output(daemon, "cat /proc/[0-9]*/comm 2>/dev/null; true")).not.toContain("sleep");
    expect(daemon.listener.welcomeCount).toBe(1);
  });

  test("they cannot look into the daemon or change it", async () => {
    const daemon = await start();
    for (const name of ["environ", "mem", "maps", "fd/0", "root/app"])
      expect(
        (await daemon.sandbox.exec(`cat < /proc/1/${name}`, { timeoutMs: 20_000 })).end,
        name,
      ).not.toEqual({
        kind: "exited",
        exitCode: 0,
      });
  });

  test("orphans that have died are waited for, and processes are the first to go when memory runs out", async () => {
    const daemon = await start();
    await output(daemon, "for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep 0.2");
    const states = () => output(daemon, "cat /proc/[0-9]*/stat 2>/dev/null; true");
    await expect.poll(async () => (await states()).match(/ Z /g), PATIENCE).toBeNull();
    expect(await output(daemon, "cat /proc/self/oom_score_adj")).toBe("500\n");
    // The daemon takes its own score back while the command starts.
    const own = async () => Number(await output(daemon, "sleep 0.1; cat /proc/1/oom_score_adj"));
    await expect.poll(own, PATIENCE).toBeLessThan(500);
  });

  test("long arguments and large answers leave the connection in order (inspect#4683)", async () => {
    const daemon = await start();
    const long = "x".repeat(1_000_000);
    expect(await output(daemon, `printf %s ${long} | wc -c`)).toMatch(/^\s*1000000\n$/);
    const { stdout } = await daemon.sandbox.exec("yes | dd bs=1024 count=20480 iflag=fullblock 2>/dev/null", {
      timeoutMs: 20_000,
      outputLimitBytes: 30 << 20,
    });
    expect(stdout.head.length + stdout.tail.length + stdout.omittedBytes).toBe(20 << 20);
    expect(await output(daemon, "echo ok")).toBe("ok\n");
  });

  test("the limit that fired is the one that is told, with the time it took (coder/xum#1539)", async () => {
    const daemon = await start();
    const { end, durationMs } = await daemon.sandbox.exec("sleep 30", { timeoutMs: 300 });
    expect(end).toEqual({ kind: "timed-out", limitMs: 300 });
    expect(durationMs).toBeGreaterThanOrEqual(299);
    expect(durationMs).toBeLessThan(10_000);
  });
});

test("at its deadline it ends, with everything it started and without its driver", async () => {
  const daemon = await start("programs", { lifeMs: 2_000 });
  const running = daemon.sandbox.exec("sleep 60", { timeoutMs: 60_000 }).then(
    result => result.end.kind,
    error => error.name,
  );
  const [code] = await once(daemon.process, "exit");
  expect(code).toBe(0);
  expect(["timed-out", "SandboxLost"]).toContain(await running);
  await expect(daemon.sandbox.exec("true", { timeoutMs: 1_000 })).rejects.toMatchObject({
    name: "SandboxLost",
  });
});

test("over TLS only a driver that knows the token is heard", async () => {
  const token = makeToken();
  const folder = toolkitForTests();
  const words = ["--disable-sigusr1", join(folder, "app/sandboxd/sandboxd.js"), "tls", "127.0.0.1:0"];
  const started = spawn(process.execPath, words, {
    stdio: ["ignore", "inherit", "pipe"],
    env: { T1_SANDBOX_TOKEN: token },
  });
  try {
    const [said] = await once(started.stderr, "data");
    const port = Number(/"port":(\d+)/.exec(`${said}`)?.[1]);
    const dial = async (known: string) => {
      const socket = connectTls({ host: "127.0.0.1", port, ...clientKeyOptions(known) });
      await once(socket, "secureConnect");
      return new FrameStream(socket);
    };
    await expect(dial(makeToken())).rejects.toThrow();
    const client = new DaemonClient(async () => {
      const stream = await dial(token);
      expect(await greetDaemon(stream, token, { isGrant: false })).toBe("welcome");
      return stream;
    });
    const { value } = await client.call({ op: "status" });
    expect(value.pid).toBe(started.pid);
    client.lose(new Error("the test has ended"));
  } finally {
    started.kill("SIGKILL");
    await once(started, "exit");
  }
});
