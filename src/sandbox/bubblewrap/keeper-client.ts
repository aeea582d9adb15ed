// The driver's end of its keeper.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Failure } from "../../failure/errors.ts";
import {
  type CallName,
  Cancelled,
  decodeError,
  type KeeperCalls,
  KeeperReply,
  type KeeperRequest,
} from "./keeper-protocol.ts";

/** All that the keeper gets of this process's environment: no key or token comes near a sandbox. */
const PASSED_VARIABLES = ["PATH", "HOME", "TMPDIR", "KUBERNETES_SERVICE_HOST"];

interface Pending {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

export class KeeperClient {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  #lastCall = 0;
  #isGone = false;
  #isClosing = false;

  /** @param compileCache value of NODE_COMPILE_CACHE */
  constructor(compileCache: string | undefined) {
    const passed = PASSED_VARIABLES.map(name => [name, process.env[name]]);
    const env = { ...Object.fromEntries(passed), NODE_COMPILE_CACHE: compileCache };
    this.#process = fork(new URL("./keeper.ts", import.meta.url), {
      serialization: "advanced",
      execArgv: [],
      env,
      cwd: "/",
      // An interrupt from the keyboard is for the driver, which then ends its sandboxes in order.
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    this.#process.on("message", message => this.#receive(KeeperReply.parse(message)));
    this.#process.on("exit", () => this.#lose());
    this.#process.on("error", () => this.#lose());
    this.#keepDriverAlive(false);
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /**
   * @throws what the keeper's side throws; the signal's own reason; Failure SandboxLost when the keeper ends before it
   * has answered
   */
  async call<Name extends CallName>(
    name: Name,
    args: Parameters<KeeperCalls[Name]>,
    signal?: AbortSignal,
  ): Promise<Awaited<ReturnType<KeeperCalls[Name]>>> {
    signal?.throwIfAborted();
    if (this.#isGone) throw lost();
    this.#lastCall += 1;
    const call = this.#lastCall;
    const cancel = (): void => this.#send({ kind: "cancel", call });
    signal?.addEventListener("abort", cancel);
    this.#keepDriverAlive(true);
    try {
      const result = await new Promise<unknown>((resolve, reject) => {
        this.#pending.set(call, { resolve, reject });
        this.#send({ kind: "call", call, name, args });
      });
      // The keeper's handler of this name has this type.
      return result as Awaited<ReturnType<KeeperCalls[Name]>>;
    } catch (error) {
      throw error instanceof Cancelled ? signal?.reason : error;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#pending.delete(call);
      // Whoever closes waits for its end, also when calls that were under way end meanwhile.
      if (this.#pending.size === 0 && !this.#isClosing) this.#keepDriverAlive(false);
    }
  }

  /** Ends the process, and with it whatever it still keeps. */
  async close(): Promise<void> {
    if (this.#isGone) return;
    this.#isClosing = true;
    this.#keepDriverAlive(true);
    const exited = once(this.#process, "exit");
    this.#process.disconnect();
    await exited;
  }

  #send(request: KeeperRequest): void {
    if (!this.#isGone) this.#process.send(request, error => error && this.#lose());
  }

  #receive(reply: KeeperReply): void {
    const pending = this.#pending.get(reply.call);
    if (reply.kind === "result") pending?.resolve(reply.result);
    else pending?.reject(decodeError(reply.error));
  }

  #lose(): void {
    this.#isGone = true;
    for (const { reject } of this.#pending.values()) reject(lost());
  }

  /** A driver that has nothing more to do may end without a word: the keeper then ends too. */
  #keepDriverAlive(isBusy: boolean): void {
    const { channel } = this.#process;
    if (isBusy) {
      this.#process.ref();
      channel?.ref();
    } else {
      this.#process.unref();
      channel?.unref();
    }
  }
}

function lost(): Failure {
  return new Failure("SandboxLost", "the process that kept the sandboxes has ended", { retryable: true });
}
