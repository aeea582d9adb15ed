// Docker's Engine API over its unix socket, which podman speaks too. Connections are kept.
// API: https://docs.docker.com/reference/api/engine/version/v1.41/
import { existsSync } from "node:fs";
import {
  Agent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request,
} from "node:http";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";

/** What every engine since Docker 20.10 and podman 4 knows; a newer one may ask for more. */
const OLDEST_VERSION = "1.41";

export interface EngineAnswer {
  readonly status: number;
  readonly value: unknown;
}

const Complaint = z.object({ message: z.string() });

export class Engine {
  readonly socketPath: string;
  /** For what podman does otherwise. */
  readonly isPodman: boolean;
  readonly #version: string;
  readonly #agent: Agent;

  private constructor(socketPath: string, headers: IncomingHttpHeaders, agent: Agent) {
    const version = headers["api-version"];
    this.socketPath = socketPath;
    this.isPodman = headers["libpod-api-version"] !== undefined;
    this.#version = typeof version === "string" ? version : OLDEST_VERSION;
    this.#agent = agent;
  }

  /**
   * @param socketPath found by itself when not given
   * @throws InputError when no engine answers
   */
  static async open(socketPath: string | undefined = findEngineSocket()): Promise<Engine> {
    const agent = new Agent({ keepAlive: true, maxSockets: 64 });
    try {
      if (socketPath === undefined) throw new Error("there is no socket of docker or podman");
      const message = await send({ socketPath, agent, method: "GET", path: "/_ping" });
      await textOf(message);
      if (message.statusCode !== 200) throw new Error(`it answers ${message.statusCode}`);
      return new Engine(socketPath, message.headers, agent);
    } catch (error) {
      agent.destroy();
      throw new InputError(
        {
          what: `no container engine answers: ${error instanceof Error ? error.message : error}`,
          where: socketPath ?? "DOCKER_HOST, CONTAINER_HOST, /var/run/docker.sock, /run/podman/podman.sock",
          expected: "a socket of docker or podman that this user may use",
          fix: "start dockerd, or podman system service --time=0, or set DOCKER_HOST=unix://PATH; a user needs to be in the socket's group",
        },
        { cause: error },
      );
    }
  }

  /** @throws Failure SandboxUnavailable when the engine does not answer or has an error of its own */
  async call(method: "GET" | "POST" | "DELETE", path: string, body?: unknown): Promise<EngineAnswer> {
    let text: string;
    let status: number;
    try {
      const options = { socketPath: this.socketPath, agent: this.#agent, method };
      const message = await send({ ...options, path: `/v${this.#version}${path}` }, body);
      text = await textOf(message);
      status = message.statusCode ?? 0;
    } catch (error) {
      const detail = `the container engine does not answer ${method} ${path}: ${error}`;
      throw new Failure("SandboxUnavailable", detail, { retryable: true, cause: error });
    }
    const value = parseJson(text);
    if (status >= 500) {
      const detail = `the container engine fails at ${method} ${path}: ${complaintOf({ status, value })}`;
      throw new Failure("SandboxUnavailable", detail, { retryable: true });
    }
    return { status, value };
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The engine's own error message. */
export function complaintOf({ status, value }: EngineAnswer): string {
  return Complaint.safeParse(value).data?.message ?? `status ${status}`;
}

/**
 * Docker's variable goes before podman's.
 *
 * @throws InputError where it names anything but a socket of this machine: another engine must not stand in for it
 */
export function findEngineSocket(): string | undefined {
  const { DOCKER_HOST, CONTAINER_HOST } = process.env;
  const host = DOCKER_HOST || CONTAINER_HOST || "";
  const [, named] = /^unix:\/\/(\/.+)$/.exec(host) ?? [];
  if (host !== "" && named === undefined)
    throw new InputError({
      what: `no engine of this machine: ${host}`,
      where: DOCKER_HOST ? "DOCKER_HOST" : "CONTAINER_HOST",
      expected: "unix:///PATH, the socket of an engine of this machine",
      fix: "set it so, or leave it out for the usual places",
    });
  const runtime = process.env.XDG_RUNTIME_DIR;
  const places = [
    ...["/var/run/docker.sock", "/run/podman/podman.sock"],
    ...(runtime === undefined ? [] : [`${runtime}/docker.sock`, `${runtime}/podman/podman.sock`]),
  ];
  return named ?? places.find(path => existsSync(path));
}

function send(options: RequestOptions, body?: unknown): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const payload = body === undefined ? "" : JSON.stringify(body);
    const headers =
      body === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(payload) };
    const sent = request({ ...options, headers: { host: "docker", ...headers } }, resolve);
    sent.once("error", reject);
    sent.end(payload);
  });
}

async function textOf(message: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of message as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces).toString("utf8");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
