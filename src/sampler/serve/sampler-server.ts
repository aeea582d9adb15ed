// Serves a sampler over HTTP in SGLang's format, so that drivers on other machines share one batch: /generate, /health,
// /get_model_info, /update_weights_from_disk (with a key of the store) and /abort_request.
import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { Failure, InputError } from "../../failure/errors.ts";
import type { ObjectStore } from "../../store/object-store.ts";
import type { PolicyReference, Sampler } from "../sampler.ts";
import { GenerateBody, UpdateWeightsBody, type Weights } from "../sglang/wire.ts";
import { Answers } from "./answers.ts";
import { hashBody, toAnswer, toRequest } from "./generate.ts";
import { ServedPolicy } from "./served-policy.ts";

export interface ServeOptions {
  /** Not disposed here. */
  readonly sampler: Sampler;
  /** Where the policies lie. */
  readonly store: ObjectStore;
  /** Served from the start; without it the server is unhealthy until the first update. */
  readonly policy?: PolicyReference;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Clients then have to send it as a bearer token. */
  readonly apiKey?: string;
  readonly maxBodyBytes?: number;
  /** Samplings under way; more are told to come again. */
  readonly maxRunning?: number;
}

/** How long a client may take to send its request; sampling may take longer than any answer before it. */
const REQUEST_MS = 60_000;
const KEPT_ANSWER_BYTES = 256 * 2 ** 20;

/** An answer that is no generation. */
class HttpError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class SamplerServer implements AsyncDisposable {
  readonly #options: ServeOptions;
  readonly #policy: ServedPolicy;
  readonly #answers = new Answers(KEPT_ANSWER_BYTES);
  readonly #server: Server;
  #draining = false;

  private constructor(options: ServeOptions) {
    this.#options = options;
    this.#policy = new ServedPolicy(options.store, options.sampler);
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch(error => answerError(response, error));
    });
    this.#server.requestTimeout = REQUEST_MS;
    this.#server.headersTimeout = REQUEST_MS;
    // Longer than drivers and load balancers keep theirs, so that no request meets a connection that just ends.
    this.#server.keepAliveTimeout = 75_000;
  }

  /** Listens, and loads the policy. @throws InputError, Failure as `ServedPolicy.use` does */
  static async open(options: ServeOptions): Promise<SamplerServer> {
    const server = new SamplerServer(options);
    server.#server.listen(options.port, options.host);
    await once(server.#server, "listening");
    try {
      if (options.policy !== undefined) await server.#policy.use(options.policy);
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  get url(): string {
    const { address, port, family } = this.#server.address() as AddressInfo;
    return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  /** Samplings under way. */
  get running(): number {
    return this.#answers.running;
  }

  /** Takes no new request, waits for those under way, at most `graceMs`, then gives up the rest. */
  async drain(graceMs: number): Promise<void> {
    this.#draining = true;
    const closed = new Promise(resolve => this.#server.close(resolve));
    // Again and again: a connection is idle only after the answer under way on it.
    const closing = setInterval(() => this.#server.closeIdleConnections(), 50);
    const timer = setTimeout(() => {
      this.#answers.abort(undefined);
      this.#server.closeAllConnections();
    }, graceMs);
    await closed;
    clearInterval(closing);
    clearTimeout(timer);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drain(0);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#draining) response.setHeader("connection", "close");
    const route = `${request.method} ${request.url?.split("?")[0]}`;
    if (route === "GET /health") return this.#health(response);
    this.#assertAllowed(request);
    switch (route) {
      case "GET /get_model_info":
      case "GET /model_info":
        return this.#modelInfo(response);
      case "POST /generate":
        return this.#generate(request, response);
      case "POST /update_weights_from_disk":
        return this.#updateWeights(request, response);
      case "POST /abort_request":
        return this.#abort(request, response);
      default:
        throw new HttpError(404, `no such route: ${route}`);
    }
  }

  async #health(response: ServerResponse): Promise<void> {
    if (this.#draining) throw new HttpError(503, "the server is draining");
    if ((await this.#policy.settled()) === undefined) throw new HttpError(503, "no weights are loaded yet");
    answer(response, 200, JSON.stringify({ status: "ok", running: this.#answers.running }));
  }

  async #modelInfo(response: ServerResponse): Promise<void> {
    const { policy, config } = await this.#weights();
    const info = {
      model_path: policy.prefix,
      is_generation: true,
      weight_version: `${policy.version}`,
      vocab_size: config.vocabSize,
      max_total_tokens: config.maxPositions,
    };
    answer(response, 200, JSON.stringify(info));
  }

  async #generate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#draining) throw new HttpError(503, "the server is draining");
    const body = await this.#readBody(request, GenerateBody);
    if (this.#answers.running >= (this.#options.maxRunning ?? 4_096))
      throw new HttpError(503, `more than ${this.#answers.running} requests are under way`);
    const wanted = body.sampling_params.custom_params?.policy;
    const weights = wanted === undefined ? await this.#weights() : await this.#policy.use(policyOf(wanted));
    const sampling = toRequest(body, weights);
    const id = body.rid ?? randomUUID();
    if (response.destroyed) return;
    const asked = this.#answers.ask(id, hashBody(body), async signal => {
      const generation = await this.#options.sampler.generate({ ...sampling, signal });
      return toAnswer(id, body, generation, weights.config);
    });
    response.once("close", asked.leave);
    answer(response, 200, await asked.answer);
  }

  async #updateWeights(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#draining) throw new HttpError(503, "the server is draining");
    const policy = policyOf(await this.#readBody(request, UpdateWeightsBody));
    await this.#policy.use(policy);
    const message = `serving ${policy.prefix} as version ${policy.version}`;
    answer(response, 200, JSON.stringify({ success: true, message, num_paused_requests: 0 }));
  }

  async #abort(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const Body = z.union([
      z.looseObject({ abort_all: z.literal(true) }),
      z.looseObject({ rid: z.string().min(1) }),
    ]);
    const body = await this.#readBody(request, Body);
    this.#answers.abort("rid" in body && body.abort_all !== true ? String(body.rid) : undefined);
    answer(response, 200, "{}");
  }

  async #weights() {
    const weights = await this.#policy.settled();
    if (weights === undefined) throw new HttpError(503, "no weights are loaded yet");
    return weights;
  }

  #assertAllowed({ headers }: IncomingMessage): void {
    const { apiKey } = this.#options;
    if (apiKey === undefined) return;
    // Hashes have one length, which comparing in constant time needs.
    const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
    if (!timingSafeEqual(hash(headers.authorization ?? ""), hash(`Bearer ${apiKey}`)))
      throw new HttpError(401, "expected the key of this server as bearer token");
  }

  async #readBody<Schema extends z.ZodType>(
    request: IncomingMessage,
    schema: Schema,
  ): Promise<z.output<Schema>> {
    const limit = this.#options.maxBodyBytes ?? 16 * 2 ** 20;
    const tooLarge = new HttpError(413, `expected a body of at most ${limit} bytes`);
    if (Number(request.headers["content-length"] ?? 0) > limit) throw tooLarge;
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      size += chunk.length;
      if (size > limit) throw tooLarge;
      chunks.push(chunk);
    }
    let json: unknown;
    try {
      json = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    } catch (error) {
      throw new HttpError(400, `expected JSON: ${String(error)}`);
    }
    const parsed = schema.safeParse(json);
    if (parsed.success) return parsed.data;
    const issues = parsed.error.issues
      .slice(0, 3)
      .map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new HttpError(400, issues.join("; "));
  }
}

function policyOf({ model_path: path, weight_version: version }: Weights): PolicyReference {
  return { version: Number(version), prefix: path.endsWith("/") ? path : `${path}/` };
}

function answer(response: ServerResponse, status: number, body: string): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

/** SGLang's shape: an object with a message. */
function answerError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const message = error instanceof Error ? error.message : String(error);
  const status = statusOf(error);
  // What was not read of the request stands in the way of the next one.
  if (!response.req.complete) response.setHeader("connection", "close");
  const type = isNotFinite(error) ? "PolicyNotFinite" : status < 500 ? "BadRequest" : "Unavailable";
  answer(response, status, JSON.stringify({ error: { message, type } }));
}

/** No other try can mend such a policy, so clients must not try again. */
function isNotFinite(error: unknown): boolean {
  return error instanceof Failure && error.name === "PolicyNotFinite";
}

function statusOf(error: unknown): number {
  if (error instanceof HttpError) return error.status;
  if (error instanceof InputError) return 400;
  if (error instanceof Failure) return isNotFinite(error) ? 422 : 503;
  // Given up while its caller still waits: by /abort_request, or at the end of draining.
  return error instanceof Error && error.name === "AbortError" ? 503 : 500;
}
