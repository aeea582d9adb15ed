// How a driver reaches a daemon over the network: it calls, and calls again when the connection was cut. A connection on
// which nothing comes any more is cut by us, because the network may never say so.

import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "node:tls";
import { Failure } from "../failure/errors.ts";
import { DaemonClient } from "./client.ts";
import { FrameStream } from "./frame-stream.ts";
import { greetDaemon } from "./handshake.ts";
import { clientKeyOptions } from "./pre-shared-key.ts";

const GREETING_MS = 10_000;
const LOST_AFTER_MS = 60_000;
const PAUSE_MS = 250;
const PROBE_MS = 30_000;

export interface DialOptions {
  readonly host: string;
  readonly port: number;
  readonly token: string;
  /** Asked while there is no connection. @returns why there will be none any more */
  readonly whyGone: () => Promise<Failure | undefined>;
  /** From a cut connection until the sandbox counts as lost; a minute when not given. */
  readonly lostAfterMs?: number;
  /** Between looks whether the other side still answers, and how long it may take to; half a minute when not given. */
  readonly probeMs?: number;
  /** Time limit of a connection's handshake; ten seconds when not given. */
  readonly greetingMs?: number;
}

/** @returns a client that connects when it is first used. Its `lose` ends it */
export function dialDaemon(options: DialOptions): DaemonClient {
  let stream: FrameStream | undefined;
  const client: DaemonClient = new DaemonClient(async () => {
    stream = await connectUntilLost(options, () => client.isLost);
    probe(client, stream, options.probeMs ?? PROBE_MS);
    return stream;
  });
  return client;
}

/** Whoever waits for a long command would not notice that the other side is gone (SWE-ReX#222). */
function probe(client: DaemonClient, stream: FrameStream, probeMs: number): void {
  const timer = setInterval(async () => {
    if (stream.isClosed || client.isLost) {
      clearInterval(timer);
      return;
    }
    const late = setTimeout(() => stream.close(), probeMs).unref();
    await client.call({ op: "status" }).catch(() => undefined);
    clearTimeout(late);
  }, probeMs).unref();
}

/** @throws Failure with the reason when there will be no connection */
async function connectUntilLost(options: DialOptions, isGivenUp: () => boolean): Promise<FrameStream> {
  const until = performance.now() + (options.lostAfterMs ?? LOST_AFTER_MS);
  for (;;) {
    if (isGivenUp()) throw new Failure("SandboxLost", "the sandbox was given up", { retryable: true });
    const stream = await dial(options);
    if (stream !== undefined) return stream;
    const failure = await options.whyGone();
    if (failure !== undefined) throw failure;
    if (performance.now() > until)
      throw new Failure("SandboxLost", `the daemon of the sandbox does not answer at ${options.host}`, {
        retryable: true,
      });
    await sleep(PAUSE_MS);
  }
}

/** @returns undefined when nobody is there who knows the token */
async function dial({
  host,
  port,
  token,
  greetingMs = GREETING_MS,
}: DialOptions): Promise<FrameStream | undefined> {
  const socket = connect({ host, port, ...clientKeyOptions(token) });
  socket.setNoDelay(true);
  const stream = new FrameStream(socket);
  const late = setTimeout(() => stream.close(), greetingMs);
  try {
    const isSecure = await Promise.race([
      new Promise<boolean>(resolve => socket.once("secureConnect", () => resolve(true))),
      stream.closed.then(() => false),
    ]);
    if (!isSecure) return undefined;
    const greeted = await greetDaemon(stream, token, { isGrant: false });
    if (greeted === "welcome") return stream;
    stream.close();
    return undefined;
  } finally {
    clearTimeout(late);
  }
}
