// The daemon's side of a connection: each request is performed once, however often and over however many connections it
// comes, and is answered every time.
import type { Duplex } from "node:stream";
import { FrameStream } from "./frame-stream.ts";
import { greetDriver } from "./handshake.ts";
import { Operations } from "./operations.ts";
import { Request, type ResponseOf } from "./protocol.ts";

interface Performed {
  /** An exec's request id, which may be forgotten with the answer. */
  readonly requestId: string | undefined;
  readonly answer: Promise<ResponseOf | { readonly bug: string }>;
}

export class Daemon {
  readonly #operations: Operations;
  readonly #performed = new Map<string, Performed>();
  #token: string | undefined;

  /** @param token none for one that takes its first driver's */
  constructor(token: string | undefined, end: () => void) {
    this.#token = token;
    this.#operations = new Operations(end);
  }

  /** Answers until the connection ends; what runs goes on without it. */
  async serve(duplex: Duplex): Promise<void> {
    const stream = new FrameStream(duplex);
    const token = await greetDriver(stream, this.#token);
    if (token === undefined) {
      stream.close();
      return;
    }
    this.#token = token;
    stream.listen(({ header, body }) => {
      const request = Request.safeParse(header);
      if (request.success) void this.#answer(stream, request.data, body);
      else this.#complain(stream, header, request.error.message);
    });
    await stream.closed;
  }

  async #answer(stream: FrameStream, { id, arrived, operation }: Request, body: Uint8Array): Promise<void> {
    for (const other of arrived) this.#forget(other);
    let performed = this.#performed.get(id);
    if (performed === undefined) {
      performed = {
        requestId: operation.op === "exec" ? operation.requestId : undefined,
        answer: this.#operations.perform(operation, body).catch((error: unknown) => ({ bug: `${error}` })),
      };
      // A look at the status changes nothing, so it may be repeated; and it is what tells which answers have arrived.
      if (operation.op !== "status") this.#performed.set(id, performed);
    }
    const answer = await performed.answer;
    if ("bug" in answer) stream.send({ kind: "reply", id, bug: answer.bug });
    else stream.send({ kind: "reply", id, value: answer.value }, answer.body);
  }

  #forget(id: string): void {
    const requestId = this.#performed.get(id)?.requestId;
    this.#performed.delete(id);
    if (requestId !== undefined) this.#operations.forget(requestId);
  }

  #complain(stream: FrameStream, header: unknown, bug: string): void {
    const id = typeof header === "object" && header !== null && "id" in header ? header.id : undefined;
    if (typeof id === "string") stream.send({ kind: "reply", id, bug: `not a request: ${bug}` });
    else stream.close();
  }
}
