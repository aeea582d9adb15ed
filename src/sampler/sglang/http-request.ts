// One HTTP request with a limit on everything: connecting, waiting, and the size of the answer. Sampling a long answer
// takes minutes in which nothing is sent, so `fetch`, which ends what is silent for five, cannot be used.
import { type Agent, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { gaveUp } from "../gave-up.ts";

export interface PostSettings {
  readonly agent: Agent;
  readonly headers: Readonly<Record<string, string>>;
  readonly connectMs: number;
  /** From the beginning to the end of the answer. */
  readonly answerMs: number;
  readonly maxAnswerBytes: number;
  readonly signal: AbortSignal | undefined;
}

export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/**
 * Posts JSON. When `signal` fires the connection is ended, by which the server knows that nobody waits any more.
 *
 * @throws AbortError when `signal` fires; errors of the network as they are, and time-outs as errors like them
 */
export function postJson(url: URL, body: string, settings: PostSettings): Promise<HttpAnswer> {
  const { agent, headers, connectMs, answerMs, maxAnswerBytes, signal } = settings;
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const request = send(url, {
    method: "POST",
    agent,
    headers: { ...headers, "content-type": "application/json", "content-length": Buffer.byteLength(body) },
  });
  const fail = (error: Error): void => {
    reject(error);
    request.destroy(error);
  };
  const timers = [setTimeout(() => fail(new Error(`no answer in ${answerMs} ms`)), answerMs)];
  const onAbort = (): void => fail(gaveUp());
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  request.once("socket", socket => {
    socket.setKeepAlive(true, 15_000);
    if (!socket.connecting) return;
    const timer = setTimeout(() => fail(new Error(`no connection in ${connectMs} ms`)), connectMs);
    timers.push(timer);
    socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => clearTimeout(timer));
  });
  request.once("error", reject);
  request.once("response", response => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size > maxAnswerBytes) fail(new Error(`an answer of more than ${maxAnswerBytes} bytes`));
    });
    response.once("error", reject);
    response.once("close", () => {
      if (!response.complete) reject(new Error(`the answer ended after ${size} bytes`));
      else resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") });
    });
  });
  request.end(body);
  return promise.finally(() => {
    timers.forEach(clearTimeout);
    signal?.removeEventListener("abort", onAbort);
  });
}
