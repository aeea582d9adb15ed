// A foreign server: answers /generate with what a test gives it. It stands for SGLang, of which no copy runs here; its
// answers have the fields and quirks of SGLang's.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface FakeServer {
  readonly url: string;
  /** Bodies of the requests so far, by path. */
  readonly requests: readonly { readonly path: string; readonly body: Record<string, unknown> }[];
}

type Handler = (body: Record<string, unknown>, response: ServerResponse, request: IncomingMessage) => void;

/** @param handlers by path; each takes the requests to it in turn, the last one those after it */
export async function startFake(handlers: Readonly<Record<string, readonly Handler[]>>): Promise<FakeServer> {
  const requests: { path: string; body: Record<string, unknown> }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const path = request.url ?? "";
    const body = JSON.parse(Buffer.concat(chunks).toString());
    const list = handlers[path] ?? [];
    const count = requests.filter(other => other.path === path).length;
    requests.push({ path, body });
    const handler = list[Math.min(count, list.length - 1)];
    if (handler === undefined) response.writeHead(404).end('{"detail":"Not Found"}');
    else handler(body, response, request);
  });
  server.listen(0, "127.0.0.1");
  await new Promise(resolve => server.once("listening", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

export const json =
  (value: unknown, status = 200): Handler =>
  (_, response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
