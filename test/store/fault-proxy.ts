// A proxy on loopback that passes requests on to a server and does to some of them what networks and busy servers do.
// The Host header goes through as it came, so that signatures stay right.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Fault =
  /** Reads this share of the body (0 to 1), answers with an error and ends the connection. */
  | {
      readonly kind: "refuse";
      readonly status: number;
      readonly code: string;
      readonly afterShare?: number;
      readonly headers?: Record<string, string>;
    }
  /** Ends the connection before the server has seen anything. */
  | { readonly kind: "cut" }
  /** The server does what it is asked; its answer is lost, or replaced by a 500. */
  | { readonly kind: "lose-answer"; readonly as: "cut" | "internal-error" }
  /** Passes on the beginning of the answer's body and then ends the connection, or is silent for ever. */
  | { readonly kind: "break-off"; readonly afterBytes: number; readonly ending: "cut" | "silence" }
  /** Holds the request back. */
  | { readonly kind: "delay"; readonly ms: number }
  /** Never answers. */
  | { readonly kind: "silence" };

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Bytes of the body that arrived. */
  bodyBytes: number;
}

export interface FaultProxy {
  readonly endpoint: string;
  readonly seen: readonly SeenRequest[];
  /** Connections that are open now. */
  openConnections(): Promise<number>;
  /** The next requests that match meet these faults, one each, in order; `undefined` lets one through. */
  plan(matches: (request: SeenRequest) => boolean, ...faults: (Fault | undefined)[]): void;
  stop(): Promise<void>;
}

interface Planned {
  readonly matches: (request: SeenRequest) => boolean;
  readonly faults: (Fault | undefined)[];
}

export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const seen: SeenRequest[] = [];
  const plans: Planned[] = [];
  const server = createServer((incoming, answer) => {
    const { method = "", url = "", headers } = incoming;
    const noted: SeenRequest = { method, url, headers, bodyBytes: 0 };
    seen.push(noted);
    const plan = plans.find(({ matches, faults }) => faults.length > 0 && matches(noted));
    handle(target, plan?.faults.shift(), incoming, answer, noted).catch(() => answer.destroy());
  });
  server.listen(0, "127.0.0.1");
  await new Promise(resolve => server.once("listening", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    openConnections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
      ),
    plan: (matches, ...faults) => plans.unshift({ matches, faults }),
    stop: async () => {
      server.closeAllConnections();
      await new Promise(resolve => server.close(resolve));
    },
  };
}

async function handle(
  target: string,
  fault: Fault | undefined,
  incoming: IncomingMessage,
  answer: ServerResponse,
  noted: SeenRequest,
): Promise<void> {
  if (fault?.kind === "cut") {
    incoming.socket.destroy();
    return;
  }
  const share = fault?.kind === "refuse" ? (fault.afterShare ?? 1) : 1;
  const body = await readBody(incoming, share, noted);
  switch (fault?.kind) {
    case "refuse":
      answer.writeHead(fault.status, {
        connection: "close",
        "content-type": "application/xml",
        ...fault.headers,
      });
      answer.end(
        incoming.method === "HEAD"
          ? undefined
          : `<Error><Code>${fault.code}</Code><Message>planned</Message></Error>`,
      );
      if (share < 1) answer.once("finish", () => incoming.socket.destroySoon());
      return;
    case "silence":
      return;
    case "delay":
      await new Promise(resolve => setTimeout(resolve, fault.ms));
  }
  const { method, url, headers } = incoming;
  const upstream = request(new URL(url ?? "", target), { method, headers });
  upstream.on("error", () => answer.destroy());
  upstream.end(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    upstream.once("response", resolve);
    upstream.once("error", reject);
  });
  if (fault?.kind === "lose-answer") {
    for await (const _ of response);
    if (fault.as === "cut") incoming.socket.destroy();
    else answer.writeHead(500).end("<Error><Code>InternalError</Code><Message>planned</Message></Error>");
    return;
  }
  answer.writeHead(response.statusCode ?? 500, response.headers);
  let passed = 0;
  for await (const chunk of response) {
    const rest = fault?.kind === "break-off" ? fault.afterBytes - passed : Number.POSITIVE_INFINITY;
    const piece = chunk.subarray(0, Math.max(0, rest));
    passed += piece.length;
    if (!answer.write(piece) && !answer.destroyed) await drained(answer);
    if (answer.destroyed) {
      response.destroy();
      return;
    }
    if (piece.length < chunk.length && fault?.kind === "break-off") {
      response.destroy();
      if (fault.ending === "cut") setTimeout(() => incoming.socket.destroy(), 20);
      return;
    }
  }
  answer.end();
}

async function readBody(incoming: IncomingMessage, share: number, noted: SeenRequest): Promise<Buffer> {
  const wanted = share * Number(incoming.headers["content-length"] ?? 0);
  const chunks: Buffer[] = [];
  for await (const chunk of incoming.iterator({ destroyOnReturn: false })) {
    chunks.push(chunk);
    noted.bodyBytes += chunk.length;
    if (share < 1 && noted.bodyBytes >= wanted) break;
  }
  return Buffer.concat(chunks);
}

/** Resolves when more may be written, or nobody reads any more. */
function drained(answer: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const done = (): void => {
      answer.off("drain", done).off("close", done);
      resolve();
    };
    answer.on("drain", done).on("close", done);
  });
}
