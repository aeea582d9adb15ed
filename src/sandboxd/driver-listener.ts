// Where a driver awaits its sandbox's daemon: a unix socket in a folder that is mounted read-only into the sandbox. What is
// in the sandbox can call, but not remove it or answer in its place.
import { chmodSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, InputError } from "../failure/errors.ts";
import { FrameStream } from "./frame-stream.ts";
import { greetDaemon } from "./handshake.ts";

/** Longest path of a unix socket (sockaddr_un), with the NUL at its end. */
const PATH_LIMIT_BYTES = 108;
/** Name of the socket in its folder. */
const SOCKET_NAME = "s";

const GREETING_MS = 10_000;
/** Connections at a time: whoever is in the sandbox can call, and each takes a descriptor of the driver's. */
const CALLERS = 16;
/** From a cut connection until the sandbox counts as lost, and between looks whether it has ended. */
const LOST_AFTER_MS = 60_000;
const LOOK_MS = 250;

export interface ListenerOptions {
  readonly folder: string;
  readonly token: string;
  /** The daemon has no token yet and gets this one, once. */
  readonly isGrant: boolean;
  /** Asked while nobody is connected. @returns why nobody will come any more */
  readonly whyGone: () => Promise<Failure | undefined>;
}

export class DriverListener {
  readonly #options: ListenerOptions;
  readonly #server: Server;
  readonly #path: string;
  #isGranted: boolean;
  #arrived: FrameStream | undefined;
  #isClosed = false;
  #knock = Promise.withResolvers<void>();
  /** How often a daemon was let in. */
  welcomeCount = 0;

  private constructor(options: ListenerOptions) {
    this.#options = options;
    this.#isGranted = !options.isGrant;
    this.#path = join(options.folder, SOCKET_NAME);
    this.#server = createServer(socket => void this.#greet(socket));
    this.#server.maxConnections = CALLERS;
  }

  /** @throws InputError when no socket can be made there */
  static async open(options: ListenerOptions): Promise<DriverListener> {
    const listener = new DriverListener(options);
    if (Buffer.byteLength(listener.#path) >= PATH_LIMIT_BYTES) {
      throw new InputError({
        what: "the folder for sandboxes has too long a path for a unix socket",
        where: listener.#path,
        expected: `less than ${PATH_LIMIT_BYTES} bytes`,
        fix: "set TMPDIR to a folder with a shorter path",
      });
    }
    rmSync(listener.#path, { force: true }); // of a driver that is gone
    await new Promise<void>((resolve, reject) => {
      listener.#server.once("error", reject).listen(listener.#path, resolve);
    });
    chmodSync(listener.#path, 0o666); // root inside may be another user here
    return listener;
  }

  /**
   * The next connection of the daemon.
   *
   * @throws Failure with the reason when none will come
   */
  async connect(): Promise<FrameStream> {
    for (const until = performance.now() + LOST_AFTER_MS; ; ) {
      const stream = this.#arrived;
      this.#arrived = undefined;
      if (stream !== undefined && !stream.isClosed) return stream;
      if (this.#isClosed) throw new Failure("SandboxLost", "the sandbox was given up", { retryable: true });
      const failure = await this.#options.whyGone();
      if (failure !== undefined) throw failure;
      if (performance.now() > until)
        throw new Failure("SandboxLost", "the daemon of the sandbox does not answer", { retryable: true });
      await Promise.race([this.#knock.promise, sleep(LOOK_MS)]);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#server.close();
    this.#knock.resolve();
    rmSync(this.#path, { force: true });
  }

  async #greet(socket: Socket): Promise<void> {
    const stream = new FrameStream(socket);
    const late = setTimeout(() => stream.close(), GREETING_MS);
    const isGrant = !this.#isGranted;
    const greeted = await greetDaemon(stream, this.#options.token, { isGrant });
    clearTimeout(late);
    if (greeted === "stranger" || this.#isClosed || (isGrant && this.#isGranted)) {
      stream.close();
      return;
    }
    this.#isGranted = true;
    this.welcomeCount += 1;
    this.#arrived?.close();
    this.#arrived = stream;
    this.#knock.resolve();
    this.#knock = Promise.withResolvers();
  }
}
