// Reads the text of a response into a generation. Everything that training relies on is checked here, where the server
// can still be named: a foreign one may leave out log-probs, routes or the stop token.
import { Failure, InputError, InvariantError } from "../../failure/errors.ts";
import type { ModelConfig } from "../../model/config.ts";
import { computeReceipt } from "../../trajectory/receipt.ts";
import { assertRoutes, type Routes } from "../../trajectory/routes.ts";
import type { GenerateRequest, Generation } from "../sampler.ts";
import { decodeRoutes, type RouteShape, routeShape } from "./routes-text.ts";
import { GenerateAnswer } from "./wire.ts";

export interface ServedGeneration extends Generation {
  /** Our server makes the receipt where it samples. For any other server it is made here, from what was received. */
  readonly receiptMadeBy: "server" | "client";
}

/** The response was cut off, aborted, or changed on its way, so another try may get a whole one. */
export class UnusableAnswer extends Error {}

/**
 * @param where the server's URL, for messages
 * @param sharedExperts columns that the server appends to each row of routes
 * @throws UnusableAnswer when a new try can help
 * @throws Failure PolicyNotFinite when a log-prob is NaN, infinite or null
 * @throws InputError when the server does not say what training needs
 */
export function readAnswer(
  text: string,
  request: GenerateRequest,
  model: Pick<ModelConfig, "vocabSize" | "layerCount" | "experts">,
  where: string,
  sharedExperts = 0,
): ServedGeneration {
  const { output_ids, meta_info } = parse(text, where);
  const {
    finish_reason: finish,
    weight_version,
    output_token_logprobs,
    routed_experts,
    t1_receipt,
  } = meta_info;
  // What an aborted request had so far is no answer (miles#2589).
  if (finish.type === "abort")
    throw new UnusableAnswer(`the server aborted: ${finish.message ?? "no reason given"}`);
  const refuse = (expected: string, fix: string): InputError =>
    new InputError({ what: "the sampler's answer cannot be trained on", where, expected, fix });
  if (weight_version === undefined || !/^\d{1,9}$/.test(weight_version))
    throw refuse(
      `expected the number of the policy as weight_version, got ${JSON.stringify(weight_version)}`,
      "start it with --weight-version, and give the version with every update of weights",
    );
  const tokens = Int32Array.from(output_ids);
  if (tokens.length === 0 || tokens.length > request.maxNewTokens)
    throw refuse(
      `expected 1 to ${request.maxNewTokens} tokens, got ${tokens.length}`,
      "check the server's version",
    );
  if (output_ids.some(id => id >= model.vocabSize))
    throw refuse(`expected ids below ${model.vocabSize}`, "let it serve the model that is trained");
  // The log-prob of the token that was drawn, not of the likeliest (NeMo-RL#3297).
  const pairs = output_token_logprobs ?? [];
  if (pairs.length !== tokens.length || pairs.some(([, id], index) => id !== tokens[index]))
    throw refuse("expected one log-prob for each sampled token, in order", "check the server's version");
  const logProbs = Float32Array.from(pairs, ([logProb]) =>
    typeof logProb === "number" ? logProb : Number.NaN,
  );
  const wrong = logProbs.findIndex(logProb => !Number.isFinite(logProb));
  if (wrong !== -1)
    throw notFinite(where, `the log-prob of token ${wrong} is ${JSON.stringify(pairs[wrong][0])}`);
  if (logProbs.some(logProb => logProb > 1e-3))
    throw refuse("expected log-probs of at most 0", "check the server's version");
  const last = tokens[tokens.length - 1] ?? -1;
  if ((finish.type === "stop") !== request.stop.includes(last))
    throw refuse(
      `expected the stop token at the end and nowhere else, got ${finish.type} after token ${last}`,
      "let the agent's end of turn be the model's only end-of-sequence token",
    );
  const policyVersion = Number(weight_version);
  const shape = routeShape(model, sharedExperts);
  const routes = readRoutes(routed_experts ?? undefined, request, tokens.length, shape, refuse);
  const turn = { prompt: request.tokens, sampled: tokens, logProbs, routes, policyVersion };
  const receipt = computeReceipt(turn);
  if (t1_receipt !== undefined && Buffer.from(receipt).toString("hex") !== t1_receipt)
    throw new UnusableAnswer("the answer does not match its receipt: it was changed on its way");
  return {
    tokens,
    logProbs,
    routes,
    finishReason: finish.type,
    policyVersion,
    receipt,
    receiptMadeBy: t1_receipt === undefined ? "client" : "server",
  };
}

function notFinite(where: string, what: string): Failure {
  return new Failure("PolicyNotFinite", `${where}: ${what}`, { retryable: false });
}

function parse(text: string, where: string): GenerateAnswer {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // Python writes numbers that are none into its JSON.
    const found = /[[,:]\s*(NaN|-?Infinity)\s*[\],}]/.exec(text)?.[1];
    if (found !== undefined) throw notFinite(where, `the response contains ${found}`);
    throw new UnusableAnswer(`an answer that is no JSON: ${text.slice(0, 100)}`);
  }
  const parsed = GenerateAnswer.safeParse(json);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: "" };
  throw new UnusableAnswer(`an answer of another shape: ${path.join(".")}: ${message}`);
}

function readRoutes(
  text: string | undefined,
  { tokens, routesHeld }: GenerateRequest,
  sampledCount: number,
  shape: RouteShape | undefined,
  refuse: (expected: string, fix: string) => InputError,
): Routes | undefined {
  if (shape === undefined) {
    if (text === undefined) return undefined;
    throw refuse("expected no experts of a dense model", "let it serve the model that is trained");
  }
  const layout = { ...shape, layerCount: shape.moeLayers.length };
  const rowCount = tokens.length + sampledCount - 1 - routesHeld;
  const fix = "start it with --enable-return-routed-experts, and check that its kernels capture them";
  const routes = text === undefined ? "no routed_experts" : decodeRoutes(text, rowCount, shape);
  if (typeof routes === "string") throw refuse(`expected the experts of each position: ${routes}`, fix);
  try {
    assertRoutes(routes, rowCount + 1, layout);
    return routes;
  } catch (error) {
    if (!(error instanceof InvariantError)) throw error;
    throw refuse(`expected the experts of each position: ${error.message}`, fix);
  }
}
