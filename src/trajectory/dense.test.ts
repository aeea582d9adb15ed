// Trajectories of models without experts, and of demonstrations: there are no routes, rather than empty ones.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { auditEpisode } from "./audit.ts";
import { type Chunk, decodeChunks, encodeChunks } from "./chunk.ts";
import { computeReceipt } from "./receipt.ts";
import { allocateRoutes, type RouteLayout } from "./routes.ts";
import { TokenStream } from "./stream.ts";

const LAYOUT: RouteLayout = { layerCount: 2, expertsPerToken: 1, expertCount: 4 };

interface Answer {
  readonly given: readonly number[];
  readonly sampled: readonly number[];
}

function play(stream: TokenStream, { given, sampled }: Answer, layout?: RouteLayout): void {
  stream.appendGiven(given);
  const prompt = stream.tokens();
  const tokens = Int32Array.from(sampled);
  const logProbs = Float32Array.from(sampled, token => -1 / (1 + token));
  const rowCount = prompt.length + tokens.length - 1 - stream.routesHeld;
  const turn = { logProbs, routes: layout && allocateRoutes(rowCount, layout), policyVersion: 5 };
  const receipt = computeReceipt({ prompt, sampled: tokens, ...turn });
  stream.appendSampled({ tokens, ...turn, receipt });
}

function streamOf(answers: readonly Answer[], layout?: RouteLayout): TokenStream {
  const stream = new TokenStream();
  for (const answer of answers) play(stream, answer, layout);
  return stream;
}

function audit(chunks: readonly Chunk[], layout: RouteLayout | undefined) {
  return auditEpisode(chunks, { layout, policyVersion: 5 });
}

const ids = fc.array(fc.nat(400), { minLength: 1, maxLength: 6 });
const answers = fc.array(fc.record({ given: ids, sampled: ids }), { minLength: 1, maxLength: 4 });

describe("a trajectory without routes", () => {
  it("comes back bit for bit and passes the audit, and so does a fork of it", () => {
    fc.assert(
      fc.property(answers, answers, (list, more) => {
        const stream = streamOf(list);
        const fork = stream.fork(list.length);
        for (const answer of more) play(fork, answer);
        const chunks = [stream.finish(undefined), fork.finish(undefined)];
        const stored = decodeChunks(encodeChunks(chunks, undefined), "x");
        expect(stored).toEqual(chunks);
        expect(stored.map(chunk => chunk.routes)).toEqual([undefined, undefined]);
        const receipts = audit(stored, undefined).map(({ receiptCount }) => receiptCount);
        expect(receipts).toEqual([list.length, more.length]);
      }),
    );
  });

  it("fails the audit after any single change to a token id, log-prob or policy version", () => {
    fc.assert(
      fc.property(answers, fc.nat(), fc.constantFrom("token", "logProb", "version"), (list, place, what) => {
        const chunk = streamOf(list).finish(undefined);
        const sampled = [...chunk.mask.keys()].filter(at => chunk.mask[at] === 1);
        if (what === "token") chunk.tokens[place % chunk.tokens.length] ^= 1;
        if (what === "logProb") chunk.logProbs[sampled[place % sampled.length]] -= 1e-3;
        const turns = chunk.turns.map(turn => ({ ...turn, policyVersion: what === "version" ? 6 : 5 }));
        expect(() => audit([{ ...chunk, turns }], undefined)).toThrow(
          /receipt does not match|from another policy/,
        );
      }),
    );
  });

  it("is not that of a model with experts, and the other way round", () => {
    const answer = { given: [1, 2], sampled: [3, 4] };
    const dense = streamOf([answer]);
    const sparse = streamOf([answer], LAYOUT);
    expect(() => sparse.finish(undefined)).toThrow("routes without a model that has experts");
    expect(() => audit([sparse.finish(LAYOUT)], undefined)).toThrow("routes without a model");
    expect(() => audit([dense.finish(undefined)], LAYOUT)).toThrow("routes are missing");
    expect(() => audit([dense.finish(LAYOUT)], LAYOUT)).toThrow("one row per predicting token");
  });

  it("has another receipt than one with routes of no row", () => {
    const turn = {
      ...{ prompt: Int32Array.of(1), sampled: Int32Array.of(2), logProbs: Float32Array.of(-1) },
      policyVersion: 1,
    };
    const none = computeReceipt(turn);
    const empty = computeReceipt({ ...turn, routes: allocateRoutes(0, LAYOUT) });
    expect(Buffer.from(none).equals(empty)).toBe(false);
  });
});

describe("a model with one expert per token", () => {
  it("may send every token of a chunk to expert 0", () => {
    // `allocateRoutes` fills with zeros: both layers chose expert 0 for all tokens.
    const chunk: Chunk = streamOf([{ given: [7], sampled: [8] }], LAYOUT).finish(LAYOUT);
    expect([...(chunk.routes?.ids ?? [])]).toEqual([0, 0]);
    expect(audit([chunk], LAYOUT)[0].receiptCount).toBe(1);
  });
});
