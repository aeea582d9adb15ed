// The driver's side: calls that survive a cut connection. What has not been answered when the connection ends is sent again
// over the next one under its old id, so that nothing runs twice and nothing is lost.
//
// The agent may have got hold of the daemon. Whatever is said that ours would not say ends the sandbox as its doing, within
// the time of the call and without being kept: no frames, answers nobody asked for, answers that are none.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "../failure/errors.ts";
import { LONGEST_TIMER_MS } from "../sandbox/deadline-timer.ts";
import type { FrameStream } from "./frame-stream.ts";
import { type Answer, Answers, type Operation, Reply, type Request } from "./protocol.ts";

/** Wait this long for an answer beyond the operation's own time: a machine may be busy, but not for ever. */
const WAIT_MS = 300_000;

/** Before another connection, when the last one has brought no answer; doubled up to the longest. */
const PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 1_000;

/** An error shows this much of what is no answer. */
const SHOWN_CHARACTERS = 300;

/** Answers that have arrived are named in the next request, or after this time in one of their own. */
const TELL_ARRIVED_MS = 1_000;

export interface Called<Op extends Operation["op"]> {
  readonly value: Answer<Op>;
  readonly body: Uint8Array;
}

interface Pending {
  readonly operation: Operation;
  readonly body: Uint8Array | undefined;
  readonly resolve: (reply: { readonly value: unknown; readonly body: Uint8Array }) => void;
  readonly reject: (error: Error) => void;
}

export class DaemonClient {
  readonly #connect: () => Promise<FrameStream>;
  readonly #answerWaitMs: number;
  readonly #pending = new Map<string, Pending>();
  #stream: FrameStream | undefined;
  readonly #name = randomUUID();
  #callCount = 0;
  /** Connections in a row that brought no answer. */
  #vainCount = 0;
  #arrived: string[] = [];
  #tellTimer: NodeJS.Timeout | undefined;
  #connecting: Promise<void> | undefined;
  #lost: Error | undefined;

  /**
   * @param connect a connection to the daemon, which has proved who it is. Rejects when there will be none any more, with
   * the Failure that then ends every call
   */
  constructor(
    connect: () => Promise<FrameStream>,
    { answerWaitMs = WAIT_MS }: { readonly answerWaitMs?: number } = {},
  ) {
    this.#connect = connect;
    this.#answerWaitMs = answerWaitMs;
  }

  /** How many calls wait for an answer. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /** Nobody calls any more. */
  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /**
   * @throws Failure SandboxLost when the daemon is gone or does not answer, SandboxBroken when it does not do what ours
   * does
   */
  async call<Op extends Operation["op"]>(
    operation: Extract<Operation, { op: Op }>,
    body?: Uint8Array,
  ): Promise<Called<Op>> {
    if (this.#lost !== undefined) throw this.#lost;
    const { op } = operation;
    const id = `${this.#name}-${this.#callCount++}`;
    const ownMs = ownTimeMs(operation);
    const timer =
      ownMs === undefined
        ? undefined
        : setTimeout(
            () => this.lose(silent(op)),
            Math.min(ownMs + this.#answerWaitMs, LONGEST_TIMER_MS),
          ).unref();
    const reply = await new Promise<{ value: unknown; body: Uint8Array }>((resolve, reject) => {
      this.#pending.set(id, { operation, body, resolve, reject });
      if (this.#stream === undefined) void this.#reconnect();
      else this.#send(this.#stream, id);
    }).finally(() => clearTimeout(timer));
    const value = Answers[op].safeParse(reply.value);
    if (!value.success) throw this.distrust(`answers ${op} with what is no answer: ${value.error.message}`);
    return { value: value.data as Answer<Op>, body: reply.body };
  }

  /**
   * Ends every call: the daemon says what ours would not say.
   *
   * @param detail goes on "its daemon"
   * @returns the Failure that they end with
   */
  distrust(detail: string): Failure {
    const error = new Failure("SandboxBroken", `its daemon ${shortened(detail)}`, { retryable: false });
    this.lose(error);
    return error;
  }

  /** Ends every call, now and later, with this error. */
  lose(error: Error): void {
    if (this.#lost !== undefined) return;
    this.#lost = error;
    clearTimeout(this.#tellTimer);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#stream?.close();
  }

  /** Of all calls that find no connection, the first one reconnects. */
  #reconnect(): Promise<void> {
    this.#connecting ??= this.#pause()
      .then(() => {
        if (this.#lost !== undefined) throw this.#lost;
        return this.#connect();
      })
      .then(
        stream => this.#use(stream),
        (error: unknown) => this.lose(error instanceof Error ? error : new Error(`${error}`)),
      )
      .finally(() => {
        this.#connecting = undefined;
      });
    return this.#connecting;
  }

  /** One that lets us in and hangs up would keep us busy for ever. */
  async #pause(): Promise<void> {
    if (this.#vainCount > 0) await sleep(Math.min(PAUSE_MS * 2 ** (this.#vainCount - 1), LONGEST_PAUSE_MS));
  }

  #use(stream: FrameStream): void {
    if (this.#lost !== undefined) {
      stream.close();
      return;
    }
    this.#stream = stream;
    this.#vainCount += 1;
    stream.listen(({ header, body }) => this.#receive(header, body));
    void stream.closed.then(() => {
      if (this.#stream !== stream) return;
      this.#stream = undefined;
      if (stream.isGarbled) this.distrust("sends what is no frame");
      // Also without a call: a sandbox that has ended is found out at once.
      if (this.#lost === undefined) void this.#reconnect();
    });
    for (const id of this.#pending.keys()) this.#send(stream, id);
  }

  #send(stream: FrameStream, id: string): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    const { operation, body } = pending;
    stream.send({ kind: "request", id, arrived: this.#arrived, operation } satisfies Request, body);
    this.#arrived = [];
  }

  #receive(header: unknown, body: Uint8Array): void {
    if (this.#lost !== undefined) return;
    const reply = Reply.safeParse(header);
    if (!reply.success) {
      this.distrust("sends what is no answer");
      return;
    }
    const { id } = reply.data;
    const pending = this.#pending.get(id);
    if (pending === undefined) {
      // Also after a cut: what is sent again has no answer yet, and the connection that could have brought it is closed.
      this.distrust("answers what it was not asked");
      return;
    }
    this.#vainCount = 0;
    const { op } = pending.operation;
    if (op !== "status") {
      this.#arrived.push(id);
      this.#tellTimer ??= setTimeout(() => this.#tellArrived(), TELL_ARRIVED_MS).unref();
    }
    // A bug of ours, or made to look like one: what is inside must not be able to end the driver.
    if ("bug" in reply.data) this.distrust(`cannot do ${op}: ${reply.data.bug}`);
    else {
      this.#pending.delete(id);
      pending.resolve({ value: reply.data.value, body });
    }
  }

  #tellArrived(): void {
    this.#tellTimer = undefined;
    if (this.#arrived.length === 0 || this.#stream === undefined) return;
    this.call({ op: "status" }).catch(() => undefined); // whoever asks next is told
  }
}

/** How long an operation may take by itself; undefined for as long as it likes. */
function ownTimeMs(operation: Operation): number | undefined {
  switch (operation.op) {
    case "exec":
      return operation.limitMs;
    case "terminal-closed":
      return undefined;
    case "attach":
      return operation.waitMs;
    case "await-process":
      return operation.limitMs;
    default:
      return 0;
  }
}

function silent(op: string): Failure {
  return new Failure("SandboxLost", `the daemon of the sandbox does not answer ${op}`, { retryable: true });
}

function shortened(text: string): string {
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}
