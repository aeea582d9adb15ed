import { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { DaemonClient } from "./client.ts";
import { FrameStream } from "./frame-stream.ts";
import { encodeFrame } from "./frames.ts";

/** The daemon's end of a connection: what is said to the driver, for each time that it says something. */
function answering(frames: readonly unknown[]): FrameStream {
  const duplex = new Duplex({
    read: () => undefined,
    write: (_piece, _encoding, done) => {
      for (const frame of frames) for (const part of encodeFrame(frame)) duplex.push(part);
      done();
    },
  });
  return new FrameStream(duplex);
}

test("a daemon that does not answer is lost, for this call and all others", async () => {
  const client = new DaemonClient(async () => answering([]), { answerWaitMs: 50 });
  const waiting = client.call({ op: "kill-agents" });
  await expect(client.call({ op: "status" })).rejects.toMatchObject({
    name: "SandboxLost",
    message: expect.stringContaining("does not answer"),
  });
  await expect(waiting).rejects.toMatchObject({ name: "SandboxLost" });
  await expect(client.call({ op: "status" })).rejects.toMatchObject({ name: "SandboxLost" });
});

test("a daemon that says what is no answer has been taken over, which is the agent's doing", async () => {
  const client = new DaemonClient(async () => answering([{ kind: "reply", value: 1 }]));
  await expect(client.call({ op: "status" })).rejects.toMatchObject({
    name: "SandboxBroken",
    retryable: false,
  });
});

test("a connection that cannot be made ends the calls with its reason, and one that is cut is made once more", async () => {
  const reason = new Error("nobody there");
  let connections = 0;
  const client = new DaemonClient(async () => {
    connections += 1;
    if (connections > 1) throw reason;
    const stream = answering([]);
    setTimeout(() => stream.close(), 10);
    return stream;
  });
  const calls = [client.call({ op: "status" }), client.call({ op: "kill-agents" })];
  for (const call of calls) await expect(call).rejects.toBe(reason);
  expect(connections).toBe(2);
});

test("a cut connection is no leave to answer what nobody asked", async () => {
  let asked = 0;
  let connections = 0;
  const client = new DaemonClient(async () => {
    const duplex = new Duplex({
      read: () => undefined,
      write: (piece: Buffer, _encoding, done) => {
        asked += 1;
        const [id] = /[\w-]{36}-\d+/.exec(piece.toString("latin1")) ?? [];
        // The first request is not answered; the second one is, and with it another.
        if (asked === 1) duplex.push(null);
        else
          for (const answered of [id, "another"])
            for (const part of encodeFrame({ kind: "reply", id: answered, value: { isEmpty: true } }))
              duplex.push(part);
        done();
      },
    });
    connections += 1;
    return new FrameStream(duplex);
  });
  expect((await client.call({ op: "kill-agents" })).value).toEqual({ isEmpty: true });
  expect(connections).toBe(2);
  await expect(client.call({ op: "kill-agents" })).rejects.toMatchObject({
    name: "SandboxBroken",
    message: expect.stringContaining("answers what it was not asked"),
  });
});
