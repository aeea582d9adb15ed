import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { auditChunk } from "./audit.ts";
import { type Chunk, decodeChunks, encodeChunks } from "./chunk.ts";
import { computeReceipt } from "./receipt.ts";
import { allocateRoutes, assertRoutes, type RouteLayout, sliceRoutes } from "./routes.ts";
import { TokenStream } from "./stream.ts";

const LAYOUT: RouteLayout = { layerCount: 3, expertsPerToken: 2, expertCount: 8 };

interface Answer {
  readonly given: readonly number[];
  readonly sampled: readonly (readonly [token: number, logProb: number])[];
}

/** Plays a sampler: routes differ from row to row, receipts are made as the engine makes them. */
function streamOf(answers: readonly Answer[], layout = LAYOUT): Chunk {
  const stream = new TokenStream();
  for (const answer of answers) play(stream, answer, layout);
  return stream.finish(layout);
}

function play(stream: TokenStream, { given, sampled }: Answer, layout: RouteLayout): void {
  stream.appendGiven(given);
  const prompt = stream.tokens();
  const tokens = Int32Array.from(sampled, ([token]) => token);
  const logProbs = Float32Array.from(sampled, ([, logProb]) => logProb);
  const first = stream.routesHeld;
  const routes = allocateRoutes(prompt.length + tokens.length - 1 - first, layout);
  const { layerCount, expertsPerToken: k, expertCount } = layout;
  for (let i = 0; i < routes.ids.length; i++) {
    const row = first + Math.floor(i / (layerCount * k));
    const layer = Math.floor(i / k) % layerCount;
    routes.ids[i] = (row * 3 + layer + (i % k)) % expertCount;
  }
  const receipt = computeReceipt({ prompt, sampled: tokens, logProbs, routes, policyVersion: 5 });
  stream.appendSampled({ tokens, logProbs, routes, policyVersion: 5, receipt });
}

const token = fc.integer({ min: 0, max: 400 });
const logProb = fc.float({ min: -20, max: 0, noNaN: true });
const answers = fc.array(
  fc.record({
    given: fc.array(token, { minLength: 1, maxLength: 6 }),
    sampled: fc.array(fc.tuple(token, logProb), { minLength: 1, maxLength: 6 }),
  }),
  { minLength: 1, maxLength: 4 },
);

describe("token stream", () => {
  it("keeps every token where it came from: sampled ids masked 1 with their log-probs, the rest 0", () => {
    fc.assert(
      fc.property(answers, list => {
        const chunk = streamOf(list);
        const expected = list.flatMap(({ given, sampled }) => [
          ...given.map(id => [id, 0, 0]),
          ...sampled.map(([id, p]) => [id, 1, Math.fround(p)]),
        ]);
        expect([...chunk.tokens].map((id, i) => [id, chunk.mask[i], chunk.logProbs[i]])).toEqual(expected);
        expect(chunk.routes?.rowCount).toBe(chunk.tokens.length - 1);
      }),
    );
  });

  it("leaves out what was added after the last answer", () => {
    const stream = new TokenStream();
    stream.appendGiven([1]);
    const routes = { rowCount: 1, layerCount: 1, expertsPerToken: 1, ids: Uint8Array.of(1) };
    stream.appendSampled({
      tokens: Int32Array.of(2),
      logProbs: Float32Array.of(-1),
      routes,
      policyVersion: 0,
      receipt: new Uint8Array(32),
    });
    stream.appendGiven([3, 4]);
    expect([...stream.finish({ layerCount: 1, expertsPerToken: 1, expertCount: 4 }).tokens]).toEqual([1, 2]);
  });

  it("refuses an answer whose routes do not continue the stream", () => {
    // verl#6029: a resumed request returns all rows again; miles#1672: a turn comes without rows.
    const stream = new TokenStream();
    stream.appendGiven([1, 2, 3]);
    const answer = (rowCount: number) => ({
      tokens: Int32Array.of(9),
      logProbs: Float32Array.of(-1),
      routes: allocateRoutes(rowCount, LAYOUT),
      policyVersion: 0,
      receipt: new Uint8Array(32),
    });
    for (const rowCount of [0, 2, 4])
      expect(() => stream.appendSampled(answer(rowCount))).toThrow("routes missing or repeated");
    expect(() => stream.appendSampled({ ...answer(3), logProbs: new Float32Array(0) })).toThrow(
      "one log-prob per token",
    );
  });
});

describe("a fork of a stream", () => {
  it("takes over the tokens and routes of the first answers as given ones, and passes the audit by itself", () => {
    fc.assert(
      fc.property(answers, answers, fc.nat(), (list, more, pick) => {
        const stream = new TokenStream();
        for (const answer of list) play(stream, answer, LAYOUT);
        const turnCount = 1 + (pick % list.length);
        const whole = stream.finish(LAYOUT);
        const fork = stream.fork(turnCount);
        for (const answer of more) play(fork, answer, LAYOUT);
        const again = fork.fork(more.length);
        for (const answer of more) play(again, answer, LAYOUT);
        expect(stream.finish(LAYOUT)).toEqual(whole);
        const start = whole.turns[turnCount - 1].end;
        for (const chunk of [fork.finish(LAYOUT), again.finish(LAYOUT)]) {
          expect([...chunk.tokens.subarray(0, start)]).toEqual([...whole.tokens.subarray(0, start)]);
          expect(chunk.mask.subarray(0, start).indexOf(1)).toBe(-1);
          expect(auditChunk(chunk, LAYOUT).receiptCount).toBe(more.length);
        }
      }),
    );
  });

  it("needs an answer to go on from", () => {
    const stream = new TokenStream();
    stream.appendGiven([1, 2]);
    expect(() => stream.fork(0)).toThrow("goes on after one of its answers");
    expect(() => stream.fork(1)).toThrow("goes on after one of its answers");
  });
});

describe("stored chunks", () => {
  it("keep which of them are not trained", () => {
    const [one, two, three] = [[1], [2], [3]].map(given => streamOf([{ given, sampled: [[4, -1]] }]));
    const chunks = [one, { ...two, untrained: true as const }, three];
    expect(decodeChunks(encodeChunks(chunks, LAYOUT), "x")).toEqual(chunks);
  });

  it("come back bit for bit", () => {
    fc.assert(
      fc.property(fc.array(answers, { maxLength: 3 }), fc.constantFrom(8, 300), (lists, expertCount) => {
        const layout = { ...LAYOUT, expertCount };
        const chunks = lists.map(list => streamOf(list, layout));
        expect(decodeChunks(encodeChunks(chunks, layout), "x")).toEqual(chunks);
      }),
    );
  });

  it("keep an expert id above 255 (prime-rl#3051)", () => {
    const routes = allocateRoutes(1, { layerCount: 1, expertsPerToken: 1, expertCount: 512 });
    routes.ids[0] = 300;
    expect(routes.ids[0]).toBe(300);
  });

  it("fail the audit after any single change to a token id, log-prob, route or policy version", () => {
    fc.assert(
      fc.property(
        answers,
        fc.nat(),
        fc.constantFrom("tokens", "logProbs", "routes", "version"),
        (list, place, what) => {
          const chunk = streamOf(list);
          const whole = auditChunk(chunk, LAYOUT);
          expect(whole.receiptCount).toBe(list.length);
          const bad = decodeChunks(encodeChunks([chunk], LAYOUT), "x")[0];
          const sampled = [...chunk.mask.keys()].filter(at => chunk.mask[at] === 1);
          if (what === "tokens") bad.tokens[place % bad.tokens.length] ^= 1;
          if (what === "logProbs") bad.logProbs[sampled[place % sampled.length]] -= 1e-3;
          if (what === "routes" && bad.routes) bad.routes.ids[place % bad.routes.ids.length] ^= 1;
          const changed =
            what === "version"
              ? { ...bad, turns: bad.turns.map(turn => ({ ...turn, policyVersion: 6 })) }
              : bad;
          expect(() => auditChunk(changed, LAYOUT)).toThrow(/receipt does not match|twice in a row/);
        },
      ),
    );
  });

  it("fail the audit when the loss mask was widened", () => {
    const chunk = streamOf([{ given: [1, 2], sampled: [[3, -1]] }]);
    chunk.mask[1] = 1;
    expect(() => auditChunk(chunk, LAYOUT)).toThrow("loss mask differs");
  });
});

describe("routes", () => {
  const rows = (ids: number[], layout: RouteLayout) => ({
    rowCount: ids.length / layout.layerCount / layout.expertsPerToken,
    ...layout,
    ids: Uint8Array.from(ids),
  });

  it("are refused when a layer was never captured (FlashInfer, vllm-ascend#16314)", () => {
    const two = { layerCount: 2, expertsPerToken: 2, expertCount: 4 };
    expect(() => assertRoutes(rows([1, 2, 0, 0, 3, 1, 0, 0], two), 3, two)).toThrow("twice in a row");
  });

  it("are legal when all tokens of a chunk choose expert 0 of a model with one expert per token", () => {
    const one = { layerCount: 2, expertsPerToken: 1, expertCount: 4 };
    expect(() => assertRoutes(rows([1, 0, 2, 0], one), 3, one)).not.toThrow();
    expect(() => assertRoutes(rows([0, 0], one), 2, one)).not.toThrow();
  });

  it("are refused when rows, ids or their number are wrong", () => {
    const one = { layerCount: 1, expertsPerToken: 2, expertCount: 4 };
    expect(() => assertRoutes(rows([1, 2], one), 3, one)).toThrow("one row per predicting token");
    expect(() => assertRoutes(rows([1, 4], one), 2, one)).toThrow("does not exist");
    expect(() => assertRoutes(rows([1, 2, 3], { ...one, expertsPerToken: 1 }), 4, one)).not.toThrow(
      "does not exist",
    );
  });

  it("are cut with their tokens (miles#1069): 8 tokens cut to 5 keep 4 rows", () => {
    const routes = allocateRoutes(7, LAYOUT);
    expect(sliceRoutes(routes, 0, 4).rowCount).toBe(4);
    expect(() => sliceRoutes(routes, 3, 9)).toThrow("out of range");
  });
});
