// The client of a served sampler: ours (sampler/serve) or SGLang. A try that failed is made again with the same seed
// and the same request id: our server gives the answer it has, SGLang samples anew; either way an answer is used whole
// or not at all, so no retry changes what the episode has seen.
import { randomUUID } from "node:crypto";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { Failure, InputError } from "../../failure/errors.ts";
import type { ModelConfig } from "../../model/config.ts";
import { gaveUp } from "../gave-up.ts";
import type { GenerateRequest, PolicyReference, Sampler } from "../sampler.ts";
import { type HttpAnswer, postJson } from "./http-request.ts";
import { readAnswer, type ServedGeneration, UnusableAnswer } from "./read-answer.ts";
import { ErrorAnswer, NotFiniteAnswer, type Weights } from "./wire.ts";

export interface SglangSettings {
  /** `http://host:port` */
  readonly url: string;
  readonly model: Pick<ModelConfig, "vocabSize" | "layerCount" | "experts">;
  readonly apiKey?: string;
  /**
   * The path by which the server loads a policy. Our server takes the key in the store, which is the default; SGLang
   * needs a folder it can read. `undefined`: somebody else updates the weights.
   */
  readonly modelPathOf?: ModelPathOf | undefined;
  /** Columns that the server appends to each row of routes, because it fuses shared experts into the choice. */
  readonly sharedExperts?: number;
  /** The default goes on about as long as it takes to replace a server that died. */
  readonly tries?: number;
  readonly connectMs?: number;
  /** Time of one try, waiting for a place in the batch included. */
  readonly answerMs?: number;
  readonly firstPauseMs?: number;
}

/** Answers that say: not now. */
const AGAIN = new Set([408, 429, 500, 502, 503, 504]);
/** As SGLang, vLLM and Bedrock say it. */
const SAYS_TOO_LONG = /context length|(input|prompt)\b.*\b(too long|longer than)/i;
const LONGEST_PAUSE_MS = 10_000;
/** SGLang's seed is a 64-bit integer; JSON numbers are exact up to 53 bits. */
const SEED_HEX_DIGITS = 12;

export class SglangSampler implements Sampler {
  readonly #settings: SglangSettings & Required<Pick<SglangSettings, "tries" | "connectMs" | "answerMs">>;
  readonly #agent: HttpAgent;
  #loaded: { readonly policy: PolicyReference; readonly loading: Promise<void> } | undefined;

  constructor(settings: SglangSettings) {
    const url = URL.parse(settings.url);
    if (url === null || !/^https?:$/.test(url.protocol))
      throw new InputError({
        what: "invalid URL of a sampler",
        where: JSON.stringify(settings.url),
        expected: "expected http://host:port",
      });
    const Agent = url.protocol === "https:" ? HttpsAgent : HttpAgent;
    this.#agent = new Agent({ keepAlive: true, maxSockets: 1_024 });
    this.#settings = { tries: 10, connectMs: 10_000, answerMs: 900_000, modelPathOf: keyOf, ...settings };
  }

  /**
   * @throws Failure SamplerUnavailable when no usable answer comes, or one from another policy; PolicyNotFinite when
   * the policy's log-probs are no numbers
   * @throws InputError when the server refuses the request, or does not say what training needs
   * @throws AbortError when `signal` fires
   */
  async generate(request: GenerateRequest): Promise<ServedGeneration> {
    const { policy, signal } = request;
    const { model, url, sharedExperts } = this.#settings;
    if (signal?.aborted) throw gaveUp();
    const read = (text: string): ServedGeneration => {
      const generation = readAnswer(text, request, model, url, sharedExperts);
      if (generation.policyVersion === policy.version) return generation;
      // Somebody else told the server what to serve, or another server has this address: try as with one that was
      // replaced.
      throw new Error(`answered from policy ${generation.policyVersion}, asked for ${policy.version}`);
    };
    const body = encodeRequest(request, this.#settings);
    return this.#post("/generate", body, answerBytes(request, this.#settings), signal, read, policy);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
  }

  /** Once per version, and by one request for all who wait. The server does nothing when it has that version. */
  #useWeights(policy: PolicyReference): Promise<void> {
    const { modelPathOf } = this.#settings;
    if (modelPathOf === undefined) return Promise.resolve();
    const { version, prefix } = policy;
    if (this.#loaded?.policy.version === version && this.#loaded.policy.prefix === prefix)
      return this.#loaded.loading;
    const body = JSON.stringify(weightsOf(policy, modelPathOf));
    const loading = this.#post("/update_weights_from_disk", body, 2 ** 20, undefined, () => undefined);
    const loaded = { policy, loading };
    this.#loaded = loaded;
    loading.catch(() => {
      if (this.#loaded === loaded) this.#loaded = undefined;
    });
    return loading;
  }

  /** @param policy has to be served before each try: a server that was replaced meanwhile has no weights, or others */
  async #post<Result>(
    path: string,
    body: string,
    maxAnswerBytes: number,
    signal: AbortSignal | undefined,
    read: (text: string) => Result,
    policy?: PolicyReference,
  ): Promise<Result> {
    const { url, apiKey, tries, connectMs, answerMs } = this.#settings;
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    const settings = { agent: this.#agent, headers, connectMs, answerMs, maxAnswerBytes, signal };
    let problem = "";
    for (let failures = 0; failures < tries; failures++) {
      if (failures > 0) await this.#pause(failures, signal);
      if (policy !== undefined) await orGiveUp(this.#useWeights(policy), signal);
      const loaded = this.#loaded;
      let mayBeAnother = false;
      try {
        const answer = await postJson(new URL(path, url), body, settings);
        if (answer.status === 200) return read(answer.text);
        if (!AGAIN.has(answer.status)) throw refused(answer, `${url}${path}`);
        problem = `${answer.status}: ${reasonOf(answer)}`;
        mayBeAnother = answer.status === 503;
      } catch (error) {
        if (error instanceof InputError || !(error instanceof Error)) throw error;
        if (error.name === "AbortError") throw error;
        if (!(error instanceof UnusableAnswer || "code" in error || error.constructor === Error)) throw error;
        problem = error.message || error.name;
        mayBeAnother = !(error instanceof UnusableAnswer);
      }
      if (mayBeAnother && this.#loaded === loaded) this.#loaded = undefined;
    }
    throw new Failure("SamplerUnavailable", `${url}${path} did not answer in ${tries} tries: ${problem}`, {
      retryable: true,
    });
  }

  async #pause(failures: number, signal: AbortSignal | undefined): Promise<void> {
    const longest = Math.min(LONGEST_PAUSE_MS, (this.#settings.firstPauseMs ?? 250) * 2 ** (failures - 1));
    try {
      // From the global generator: drivers that failed together must not come back together.
      await sleep(Math.random() * longest, undefined, { signal });
    } catch {
      throw gaveUp();
    }
  }
}

/** What others wait for too goes on when one of them leaves. */
async function orGiveUp(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return work;
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(gaveUp());
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function keyOf({ prefix }: PolicyReference): string {
  return prefix;
}

type ModelPathOf = (policy: PolicyReference) => string;

function weightsOf(policy: PolicyReference, modelPathOf: ModelPathOf): Weights {
  return { model_path: modelPathOf(policy), weight_version: `${policy.version}` };
}

/** The id comes from chance alone: two requests of equal content are two samples, even with equal seeds. */
function encodeRequest(
  { tokens, routesHeld, sampling, stop, maxNewTokens, seed, policy }: GenerateRequest,
  { modelPathOf, model }: Pick<SglangSettings, "modelPathOf" | "model">,
): string {
  return JSON.stringify({
    rid: randomUUID(),
    input_ids: [...tokens],
    sampling_params: {
      max_new_tokens: maxNewTokens,
      temperature: sampling.temperature,
      top_p: sampling.topP,
      top_k: sampling.topK === 0 ? -1 : sampling.topK,
      stop_token_ids: stop,
      sampling_seed: Number.parseInt(seed.slice(0, SEED_HEX_DIGITS), 16),
      custom_params: { seed, ...(modelPathOf && { policy: weightsOf(policy, modelPathOf) }) },
    },
    return_logprob: true,
    return_routed_experts: model.experts !== undefined,
    routed_experts_start_len: routesHeld,
  });
}

/** The most that an answer may have: ids and log-probs as text, routes as base64 of int32. */
function answerBytes(
  { tokens, routesHeld, maxNewTokens }: GenerateRequest,
  { model: { layerCount, experts }, sharedExperts = 0 }: Pick<SglangSettings, "model" | "sharedExperts">,
): number {
  const rows = tokens.length + maxNewTokens - routesHeld;
  // Twice what is expected: a server that sends more rows is refused for that, not for its size.
  const columns = experts === undefined ? 0 : 2 * (experts.perToken + sharedExperts);
  const routeBytes = 6 * rows * layerCount * columns;
  return 2 ** 20 + 200 * maxNewTokens + routeBytes;
}

function refused(answer: HttpAnswer, where: string): Error {
  const notFinite = NotFiniteAnswer.safeParse(tryJson(answer.text));
  if (notFinite.success)
    return new Failure("PolicyNotFinite", `${where}: ${notFinite.data.error.message}`, { retryable: false });
  const said = `${answer.status}: ${reasonOf(answer)}`;
  const refusal = (what: string, fix?: string): InputError =>
    new InputError({ what, where, expected: said, ...(fix !== undefined && { fix }) });
  if (answer.status === 401 || answer.status === 403)
    return refusal("the sampler does not let us in", "give the key that the server was started with");
  // An episode never asks for more than its config allows, so the two disagree.
  if (SAYS_TOO_LONG.test(said))
    return refusal(
      "the sampler's context is shorter than the run's",
      "start the server with a context of at least agent.contextTokens, or lower that setting",
    );
  return refusal("the sampler refuses the request");
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function reasonOf({ text }: HttpAnswer): string {
  const parsed = ErrorAnswer.safeParse(tryJson(text));
  return parsed.success ? parsed.data.slice(0, 1_000) : text.slice(0, 200);
}
