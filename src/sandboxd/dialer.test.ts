import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { afterAll, expect, test } from "vitest";
import { Failure } from "../failure/errors.ts";
import { type DialOptions, dialDaemon } from "./dialer.ts";
import { FrameStream } from "./frame-stream.ts";
import { greetDriver, makeToken } from "./handshake.ts";
import { serverKeyOptions } from "./pre-shared-key.ts";

const closing: (() => void)[] = [];
// Each test has its own, and waits more than it works.
afterAll(() => {
  for (const close of closing.splice(0)) close();
});

/** @param behave what the other side does with each connection */
async function listen(token: string, behave: (socket: TLSSocket) => void): Promise<number> {
  const sockets = new Set<TLSSocket>();
  const server = createServer(serverKeyOptions(token), socket => {
    sockets.add(socket.on("error", () => undefined));
    behave(socket);
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

function dial(port: number, token: string, options: Partial<DialOptions> = {}) {
  const client = dialDaemon({
    ...{ host: "127.0.0.1", port, token, whyGone: async () => undefined },
    ...{ lostAfterMs: 1_000, probeMs: 150, ...options },
  });
  closing.push(() => client.lose(new Error("the test has ended")));
  return client;
}

test.concurrent("B55: of a daemon that lets a driver in and never answers the connection is given up, and made once more", async () => {
  const token = makeToken();
  let connections = 0;
  const port = await listen(token, async socket => {
    connections += 1;
    const stream = new FrameStream(socket);
    await greetDriver(stream, token);
    if (connections === 1) return; // half dead from here on
    stream.listen(({ header }) => {
      const { id } = header as { readonly id: string };
      stream.send({ kind: "reply", id, value: { isEmpty: true } });
    });
  });
  expect((await dial(port, token).call({ op: "kill-agents" })).value).toEqual({ isEmpty: true });
  expect(connections).toBe(2);
});

test.concurrent("B55: a server that accepts and says nothing is a lost sandbox, in time", async () => {
  const token = makeToken();
  const port = await listen(token, () => undefined);
  const client = dial(port, token, { lostAfterMs: 500, greetingMs: 200 });
  await expect(client.call({ op: "status" })).rejects.toMatchObject({
    ...{ name: "SandboxLost", retryable: true },
    message: expect.stringContaining("does not answer"),
  });
});

test.concurrent("B56: a command takes the time of its own limit, however long nothing else comes", async () => {
  const token = makeToken();
  let connections = 0;
  const port = await listen(token, async socket => {
    connections += 1;
    const stream = new FrameStream(socket);
    await greetDriver(stream, token);
    stream.listen(({ header }) => {
      const { id, operation } = header as {
        readonly id: string;
        readonly operation: { readonly op: string };
      };
      const status = { pid: 1, requests: [], rssBytes: 1 };
      if (operation.op === "status") stream.send({ kind: "reply", id, value: status });
      else setTimeout(() => stream.send({ kind: "reply", id, value: { isEmpty: true } }), 2_000);
    });
  });
  // A machine that is busy answers no faster.
  const client = dial(port, token, { probeMs: 600 });
  expect((await client.call({ op: "kill-agents" })).value).toEqual({ isEmpty: true });
  expect(connections).toBe(1);
});

test.concurrent("nobody there, or somebody who does not know the token, is a lost sandbox", async () => {
  const token = makeToken();
  const port = await listen(makeToken(), () => undefined);
  await expect(dial(port, token).call({ op: "status" })).rejects.toMatchObject({ name: "SandboxLost" });
  const nowhere = dial(1, token).call({ op: "status" });
  await expect(nowhere).rejects.toMatchObject({ name: "SandboxLost" });
});

test.concurrent("why a sandbox has gone is told at once, and not only after the longest wait", async () => {
  const reason = new Failure("SandboxLost", "Spot took its machine back", { retryable: true });
  const client = dial(1, makeToken(), { lostAfterMs: 60_000, whyGone: async () => reason });
  await expect(client.call({ op: "status" })).rejects.toBe(reason);
});

test.concurrent("a driver that is done stops calling", async () => {
  let asked = 0;
  const whyGone = async () => {
    asked += 1;
    return undefined;
  };
  const client = dial(1, makeToken(), { lostAfterMs: 60_000, whyGone });
  const waiting = client.call({ op: "status" });
  client.lose(new Error("done"));
  await expect(waiting).rejects.toThrow("done");
  await new Promise(resolve => setTimeout(resolve, 600));
  expect(asked).toBeLessThanOrEqual(2);
});
