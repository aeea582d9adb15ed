// A daemon that the agent has got hold of, or that is broken: whatever it says or does not say, each call ends in time, as
// a Failure with a name, and without being kept. The connections are real sockets of the loopback.
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex } from "node:stream";
import fc from "fast-check";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { Failure } from "../failure/errors.ts";
import { DaemonClient } from "./client.ts";
import { DaemonSandbox } from "./daemon-sandbox.ts";
import { describePaths } from "./describe-paths.ts";
import { DriverListener } from "./driver-listener.ts";
import { FrameStream } from "./frame-stream.ts";
import { BODY_LIMIT_BYTES, encodeFrame, HEADER_LIMIT_BYTES } from "./frames.ts";
import { greetDriver, makeToken } from "./handshake.ts";
import { parseBody } from "./parse-body.ts";
import { Changes, PIECE_BYTES } from "./protocol.ts";

const MIB = 1 << 20;
const PATIENCE_MS = 300;

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

interface Asked {
  readonly id: string;
  readonly operation: { readonly op: string } & Record<string, unknown>;
}

/** @param behave what the other side does with each connection, which has proved itself */
async function hostile(behave: (socket: Socket) => void, { answerWaitMs = PATIENCE_MS } = {}) {
  const sockets = new Set<Socket>();
  const server = createServer(socket => {
    sockets.add(socket.on("error", () => undefined));
    behave(socket);
  });
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  let connections = 0;
  const client = new DaemonClient(
    async () => {
      connections += 1;
      return new FrameStream(connect(port, "127.0.0.1"));
    },
    { answerWaitMs },
  );
  const close = (): void => {
    client.lose(new Error("the test has ended"));
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  closing.push(close);
  const lease = { id: "hostile", generation: 1, deadlineMs: Date.now() + 60_000 };
  const sandbox = new DaemonSandbox(lease, client, { workdir: "/", env: {}, user: undefined });
  return { client, sandbox, close, connections: () => connections };
}

/** @param answer the value, and the bytes behind it */
function answering(answer: (asked: Asked) => readonly [value: unknown, body?: Uint8Array] | undefined) {
  return (socket: Socket): void => {
    const stream = new FrameStream(socket);
    stream.listen(({ header }) => {
      const asked = header as Asked;
      const [value, body] = answer(asked) ?? [];
      if (value !== undefined) stream.send({ kind: "reply", id: asked.id, value }, body);
    });
  };
}

async function endOf(calling: Promise<unknown>): Promise<Failure | undefined> {
  try {
    await calling;
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(Failure);
    return error as Failure;
  }
}

const EMPTY = { headBytes: 0, tailBytes: 0, omittedBytes: 0 };
const ENDED = { end: { kind: "exited", exitCode: 0 }, durationMs: 1 } as const;
const BROKEN = { name: "SandboxBroken", retryable: false };

describe("frames", () => {
  test("any bytes in any pieces end a call by a name, within its time", async () => {
    const bytes = fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(bytes, fc.boolean(), async (pieces, isHangingUp) => {
        const { client, close } = await hostile(
          socket => {
            for (const piece of pieces) socket.write(piece);
            if (isHangingUp) socket.end();
          },
          { answerWaitMs: 60 },
        );
        const failure = await endOf(client.call({ op: "kill-agents" }));
        expect(["SandboxBroken", "SandboxLost"]).toContain(failure?.name);
        close();
      }),
      { numRuns: 40 },
    );
  });

  test("that are none are the agent's doing, not a connection to be made again", async () => {
    const { client, connections } = await hostile(socket => socket.write(Buffer.alloc(64, 0xff)));
    expect(await endOf(client.call({ op: "status" }))).toMatchObject(BROKEN);
    expect(connections()).toBe(1);
  });

  test("that are announced and never sent take no memory", async () => {
    const prefix = Buffer.alloc(8);
    prefix.writeUInt32BE(HEADER_LIMIT_BYTES, 0);
    prefix.writeUInt32BE(BODY_LIMIT_BYTES, 4);
    const many = await Promise.all(
      Array.from({ length: 20 }, () => hostile(socket => socket.write(prefix), { answerWaitMs: 1_000 })),
    );
    const before = process.memoryUsage.rss();
    const ends = Promise.all(many.map(({ client }) => endOf(client.call({ op: "status" }))));
    await new Promise(resolve => setTimeout(resolve, 500));
    expect(process.memoryUsage.rss() - before).toBeLessThan(400 * MIB); // of the 1,600 announced
    for (const failure of await ends) expect(failure?.name).toBe("SandboxLost");
  });

  test("without end, of answers nobody asked for, are not kept and not listened to", async () => {
    let sent = 0;
    const { client } = await hostile(
      socket => {
        const more = (): void => {
          while (!socket.destroyed && sent < 1_000_000) {
            sent += 1;
            const [frame = ""] = encodeFrame({ kind: "reply", id: `${"x".repeat(400)}${sent}`, value: {} });
            if (!socket.write(frame)) return void socket.once("drain", more);
          }
        };
        more();
      },
      { answerWaitMs: 30_000 },
    );
    expect(await endOf(client.call({ op: "kill-agents" }))).toMatchObject(BROKEN);
    expect(client.isLost).toBe(true);
    expect(sent).toBeLessThan(1_000_000);
  });
});

describe("answers", () => {
  test("of any content are an answer of that operation, or end the sandbox by a name", async () => {
    const operation = fc.constantFrom("kill-agents", "status", "put-metadata", "get-metadata" as const);
    await fc.assert(
      fc.asyncProperty(operation, fc.jsonValue(), async (op, value) => {
        const { client, close } = await hostile(answering(() => [value]));
        const failure = await endOf(client.call({ op } as { op: "put-metadata" }));
        const isOne =
          op === "put-metadata" &&
          value !== null &&
          typeof value === "object" &&
          !Array.isArray(value) &&
          Object.keys(value).length === 0;
        if (!isOne) expect(failure).toMatchObject(BROKEN);
        expect(failure?.message.length ?? 0).toBeLessThan(500);
        close();
      }),
      { numRuns: 60 },
    );
  });

  test("that never come are a lost sandbox, in time, for every call", async () => {
    const { client, sandbox } = await hostile(() => undefined);
    const startedAt = performance.now();
    const calls = [
      client.call({ op: "kill-agents" }),
      sandbox.exec("true", { timeoutMs: 200 }),
      sandbox.download("/", 1),
      sandbox.upload(new Uint8Array(10), "/"),
      sandbox.terminal({ columns: 80, rows: 24 }),
    ];
    for (const call of calls) expect((await endOf(call))?.name).toBe("SandboxLost");
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });

  test("that came before are no answers to what is asked now", async () => {
    let first: string | undefined;
    const { client } = await hostile(socket => {
      const stream = new FrameStream(socket);
      stream.listen(({ header }) => {
        const { id } = header as Asked;
        first ??= id;
        stream.send({ kind: "reply", id: first, value: { isEmpty: true } });
      });
    });
    expect((await client.call({ op: "kill-agents" })).value).toEqual({ isEmpty: true });
    expect(await endOf(client.call({ op: "kill-agents" }))).toMatchObject(BROKEN);
  });

  test("of what cannot be done end the sandbox, and are no bug that ends the driver", async () => {
    const { sandbox } = await hostile(socket => {
      const stream = new FrameStream(socket);
      stream.listen(({ header }) =>
        stream.send({ kind: "reply", id: (header as Asked).id, bug: "x".repeat(100_000) }),
      );
    });
    const failure = await endOf(sandbox.exec("true", { timeoutMs: 1_000 }));
    expect(failure).toMatchObject(BROKEN);
    expect(failure?.message.length).toBeLessThan(500);
  });

  test("as long as a frame, of a million things that are none, take no time and no message", async () => {
    const rows = `[${"0,".repeat(7 * MIB)}0]`;
    const [text = ""] = [
      `{"kind":"reply","id":"ID","value":{"history":${rows},"screen":[],"applicationCursorKeys":false}}`,
    ];
    const { client } = await hostile(
      socket => {
        const stream = new FrameStream(socket);
        stream.listen(({ header }) => {
          const bytes = Buffer.from(text.replace("ID", (header as Asked).id));
          const prefix = Buffer.alloc(8);
          prefix.writeUInt32BE(bytes.length, 0);
          socket.write(prefix);
          socket.write(bytes);
        });
      },
      { answerWaitMs: 60_000 },
    );
    const failure = await endOf(client.call({ op: "terminal-view", terminal: "t" }));
    expect(failure).toMatchObject({ ...BROKEN, message: expect.stringContaining("no answer") });
    expect(failure?.message.length).toBeLessThan(500);
  });

  test("in bodies are read with the same distrust", async () => {
    const paths = ["etc/passwd", "/", "/a/", "//a", "/./a", "/a/../b", "/a/.."];
    const texts = [
      ...["", "{", "[[1]]", `[${"0,".repeat(MIB)}0]`],
      ...paths.map(path => JSON.stringify([[path, "added", "file", false, null]])),
    ];
    for (const text of texts) {
      const { client } = await hostile(
        answering(() => [{}, Buffer.from(text)]),
        { answerWaitMs: 20_000 },
      );
      const { body } = await client.call({ op: "changes" });
      expect(await endOf((async () => parseBody(client, body, Changes, "changes"))())).toMatchObject(BROKEN);
    }
    const { client } = await hostile(answering(() => [{ entries: [null] }]));
    expect(await endOf(describePaths(client, ["/a", "/b"]))).toMatchObject(BROKEN);
  });
});

describe("output", () => {
  test("of a command is what was announced and no more than was asked for, or ends the sandbox", async () => {
    const size = fc.integer({ min: 0, max: 3_000 });
    await fc.assert(
      fc.asyncProperty(
        ...[size, size, size, size, size],
        async (head, tail, errorHead, errorTail, bodyBytes) => {
          const stdout = { headBytes: head, tailBytes: tail, omittedBytes: 0 };
          const stderr = { headBytes: errorHead, tailBytes: errorTail, omittedBytes: 7 };
          const isHonest = bodyBytes % 2 === 0;
          const sum = head + tail + errorHead + errorTail;
          const body = new Uint8Array(isHonest ? sum : bodyBytes);
          const { sandbox, close } = await hostile(answering(() => [{ ...ENDED, stdout, stderr }, body]));
          const asking = sandbox.exec("true", { timeoutMs: 1_000, outputLimitBytes: 2_000 });
          const isRight = body.length === sum && head + tail <= 2_000 && errorHead + errorTail <= 2_000;
          if (isRight) {
            const result = await asking;
            expect([result.stdout.head.length, result.stdout.tail.length]).toEqual([head, tail]);
            expect([result.stderr.head.length, result.stderr.tail.length]).toEqual([errorHead, errorTail]);
          } else expect(await endOf(asking)).toMatchObject(BROKEN);
          close();
        },
      ),
      { numRuns: 60 },
    );
  });

  test("of a terminal likewise; and it takes no more keys than it is sent", async () => {
    const values: Record<string, readonly [unknown, Uint8Array?]> = {
      "terminal-open": [{}],
      "terminal-send": [{ taken: 4 }],
      "terminal-read": [{ ...EMPTY, headBytes: 1 << 30 }, new Uint8Array(5)],
    };
    const open = async () => {
      const { sandbox } = await hostile(answering(({ operation }) => values[operation.op]));
      return sandbox.terminal({ columns: 80, rows: 24 });
    };
    expect(await endOf((await open()).send("abc"))).toMatchObject(BROKEN);
    expect(await endOf((await open()).readNew())).toMatchObject(BROKEN);
  });

  test("of a terminal that is said to be closed needs nobody to say that its shell has ended", async () => {
    const { sandbox } = await hostile(
      answering(({ operation }) => (operation.op === "terminal-closed" ? undefined : [{}])),
    );
    const terminal = await sandbox.terminal({ columns: 80, rows: 24 });
    await terminal[Symbol.asyncDispose]();
    await terminal.closed;
  });
});

describe("a download", () => {
  test.each([0, 1, PIECE_BYTES - 1])(
    "in pieces of %i bytes, for ever, ends after the second",
    async bytes => {
      let pieces = 0;
      const { sandbox } = await hostile(
        answering(() => {
          pieces += 1;
          return [{ state: "more" }, new Uint8Array(bytes)];
        }),
        { answerWaitMs: 20_000 },
      );
      expect(await endOf(sandbox.download("/", Number.MAX_SAFE_INTEGER))).toMatchObject(BROKEN);
      expect(pieces).toBe(2);
    },
  );

  test("larger than was asked for is not kept", async () => {
    const { sandbox } = await hostile(
      answering(() => [{ state: "more" }, new Uint8Array(PIECE_BYTES)]),
      { answerWaitMs: 20_000 },
    );
    expect(await sandbox.download("/", 3 * PIECE_BYTES)).toEqual({ oversized: true });
  });
});

test("one that lets us in and hangs up is not called again without a pause", async () => {
  const { client, connections } = await hostile(socket => socket.end(), { answerWaitMs: 1_500 });
  expect(await endOf(client.call({ op: "status" }))).toMatchObject({ name: "SandboxLost" });
  expect(connections()).toBeLessThan(20);
});

test("who calls at a driver's listener without the token is sent away, and the daemon still gets in", async () => {
  const folder = mkdtempSync(join(tmpdir(), "t1-h-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const token = makeToken();
  const listener = await DriverListener.open({
    folder,
    token,
    isGrant: false,
    whyGone: async () => undefined,
  });
  closing.push(() => listener.close());
  const call = (): Socket => {
    const socket = connect(join(folder, "s")).on("error", () => undefined);
    closing.push(() => socket.destroy());
    return socket;
  };
  const closed = (socket: Socket) => new Promise(resolve => socket.once("close", resolve));
  const garbled = call();
  for (const part of encodeFrame({ kind: "hello", version: 1, nonce: "0".repeat(64), isFresh: false }))
    garbled.write(part);
  garbled.write(Buffer.alloc(MIB, 0xff));
  const tooLong = call();
  tooLong.write(Buffer.from([0, 0, 0x10, 1, 0, 0, 0, 0])); // a header longer than any greeting
  await Promise.all([closed(garbled), closed(tooLong)]);

  const stream = new FrameStream(call());
  const [greeted] = await Promise.all([greetDriver(stream, token), listener.connect()]);
  expect(greeted).toBe(token);
});

test("of a greeting no more is taken than is looked at", async () => {
  let frames = 0;
  const duplex = new Duplex({
    read: () => {
      frames += 1;
      setImmediate(() => duplex.push(Buffer.concat(encodeFrame({ padding: "x".repeat(4_000) }))));
    },
    write: (_piece, _encoding, done) => done(),
  });
  const stream = new FrameStream(duplex);
  closing.push(() => stream.close());
  await stream.next();
  await new Promise(resolve => setTimeout(resolve, 300));
  expect(frames).toBeLessThan(50);
});
