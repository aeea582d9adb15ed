import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { auditEpisode } from "./audit.ts";
import { type Chunk, decodeChunks, encodeChunks } from "./chunk.ts";
import { PrefixHashes } from "./prefix-hashes.ts";
import { computeReceipt } from "./receipt.ts";
import { allocateRoutes, assertRoutes, type RouteLayout, type Routes, sliceRoutes } from "./routes.ts";
import { TokenStream } from "./stream.ts";

const LAYOUT: RouteLayout = { layerCount: 3, expertsPerToken: 2, expertCount: 8 };
const EXPECTED = { layout: LAYOUT, policyVersion: 5 };

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

function play(stream: TokenStream, { given, sampled }: Answer, layout: RouteLayout | undefined): void {
  stream.appendGiven(given);
  const prompt = stream.tokens();
  const tokens = Int32Array.from(sampled, ([token]) => token);
  const logProbs = Float32Array.from(sampled, ([, logProb]) => logProb);
  const first = stream.routesHeld;
  const routes = layout && routesFrom(first, prompt.length + tokens.length - 1 - first, layout);
  const answer = { tokens, logProbs, routes, policyVersion: 5 };
  stream.appendSampled({ ...answer, receipt: computeReceipt({ ...answer, prompt, sampled: tokens }) });
}

function routesFrom(first: number, rowCount: number, layout: RouteLayout): Routes {
  const routes = allocateRoutes(rowCount, layout);
  const { layerCount, expertsPerToken: k, expertCount } = layout;
  for (let i = 0; i < routes.ids.length; i++) {
    const row = first + Math.floor(i / (layerCount * k));
    const layer = Math.floor(i / k) % layerCount;
    routes.ids[i] = (row * 3 + layer + (i % k)) % expertCount;
  }
  return routes;
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
  it("takes over the tokens and routes of the first answers as given ones, and passes the audit beside the stream it came from", () => {
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
        const forks = [fork.finish(LAYOUT), again.finish(LAYOUT)];
        for (const chunk of forks) {
          expect([...chunk.tokens.subarray(0, start)]).toEqual([...whole.tokens.subarray(0, start)]);
          expect(chunk.mask.subarray(0, start).indexOf(1)).toBe(-1);
        }
        const receipts = auditEpisode([whole, ...forks], EXPECTED).map(({ receiptCount }) => receiptCount);
        expect(receipts).toEqual([list.length, more.length, more.length]);
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
});

describe("the audit of an episode", () => {
  /** A stream, a fork of it and a fork of that: what a summary records. */
  const episode = (list: readonly Answer[], more: readonly Answer[], pick: number, layout?: RouteLayout) => {
    const stream = new TokenStream();
    for (const answer of list) play(stream, answer, layout);
    const fork = stream.fork(1 + (pick % list.length));
    for (const answer of more) play(fork, answer, layout);
    const again = fork.fork(1);
    for (const answer of more) play(again, answer, layout);
    return [stream, fork, again].map(each => each.finish(layout));
  };
  const layouts = fc.constantFrom(LAYOUT, { ...LAYOUT, expertCount: 300 }, undefined);
  const refusal =
    /receipt does not match|twice in a row|does not exist|do not tile|another policy|mask differs|not finite, or not 0|equal those of no earlier chunk/;

  it("finds any single bit that is changed in any array of any chunk, also in rows that a fork took over", () => {
    fc.assert(
      fc.property(
        answers,
        answers,
        fc.nat(),
        layouts,
        fc.nat(),
        fc.nat(7),
        (list, more, pick, layout, at, bit) => {
          const chunks = episode(list, more, pick, layout);
          const expected = { layout, policyVersion: 5 };
          expect(auditEpisode(chunks, expected)).toHaveLength(3);
          const file = encodeChunks(chunks, layout);
          // The file is a header of JSON, whose length its first eight bytes say, and then nothing but the arrays.
          const first = 8 + Number(Buffer.from(file.buffer, file.byteOffset).readBigUInt64LE(0));
          file[first + (at % (file.length - first))] ^= 1 << bit;
          expect(() => auditEpisode(decodeChunks(file, "x"), expected)).toThrow(refusal);
        },
      ),
      { numRuns: 400 },
    );
  });

  it("finds a chunk whose turns leave something out, and one of another policy", () => {
    const chunk = streamOf([
      { given: [1], sampled: [[2, -1]] },
      { given: [3], sampled: [[4, -1]] },
    ]);
    const [first, second] = chunk.turns;
    const audit = (changes: Partial<Chunk>) => () => auditEpisode([{ ...chunk, ...changes }], EXPECTED);
    expect(audit({ turns: [first] })).toThrow("do not tile");
    expect(audit({ turns: [second] })).toThrow("equal those of no earlier chunk");
    expect(audit({ turns: [] })).toThrow("do not tile");
    expect(audit({ turns: [first, second, second] })).toThrow("do not tile");
    expect(audit({ turns: [second, first] })).toThrow("do not tile");
    expect(audit({ routes: undefined })).toThrow("routes are missing");
    expect(() => auditEpisode([chunk], { ...EXPECTED, policyVersion: 6 })).toThrow(
      "chunk 0: sampled from another policy than the closed list says",
    );
    expect(() => auditEpisode([chunk], { ...EXPECTED, layout: { ...LAYOUT, layerCount: 4 } })).toThrow(
      "routes of another model",
    );
    expect(audit({})).not.toThrow();
  });

  it("finds a fork whose parent is not there, or is another one", () => {
    const one: Answer = { given: [1], sampled: [[2, -1]] };
    const [parent, fork] = episode([one], [{ given: [3], sampled: [[4, -1]] }], 0, LAYOUT);
    expect(() => auditEpisode([parent, fork], EXPECTED)).not.toThrow();
    expect(() => auditEpisode([fork], EXPECTED)).toThrow("equal those of no earlier chunk");
    expect(() => auditEpisode([fork, parent], EXPECTED)).toThrow("equal those of no earlier chunk");
    const other = streamOf([{ given: [9], sampled: [[2, -1]] }]);
    expect(() => auditEpisode([other, fork], EXPECTED)).toThrow("equal those of no earlier chunk");
  });

  it.each([Number.NaN, Number.NEGATIVE_INFINITY])(
    "finds a log-prob of %s, whatever its receipt says",
    value => {
      const chunk = streamOf([{ given: [1, 2], sampled: [[3, value]] }]);
      expect(() => auditEpisode([chunk], EXPECTED)).toThrow(/not finite, .*logProb=/);
    },
  );
});

describe("a receipt", () => {
  it("is the same whatever was hashed of the stream before, and another one for any other prompt", () => {
    const length = fc.integer({ min: 1, max: 1200 });
    fc.assert(
      fc.property(
        fc.array(length, { minLength: 1, maxLength: 5 }),
        fc.nat(),
        fc.boolean(),
        (lengths, at, turns) => {
          const prefixes = new PrefixHashes();
          for (const count of turns ? lengths.sort((a, b) => a - b) : lengths) {
            const prompt = Int32Array.from({ length: count }, (_, index) => index * 7);
            const rest = { sampled: Int32Array.of(1), logProbs: Float32Array.of(-1), policyVersion: 0 };
            const fresh = computeReceipt({ prompt, ...rest });
            expect(computeReceipt({ prompt, ...rest }, prefixes)).toEqual(fresh);
            const other = prompt.with(at % count, -1);
            expect(computeReceipt({ prompt: other, ...rest }, prefixes)).toEqual(
              computeReceipt({ prompt: other, ...rest }),
            );
            expect(computeReceipt({ prompt: other, ...rest })).not.toEqual(fresh);
          }
        },
      ),
    );
  });

  it("covers these bytes, by hand: header, chain of full blocks of 256 ids, the ids behind them, and the answer", () => {
    const prompt = Int32Array.from({ length: 600 }, (_, index) => index);
    const sha = (...parts: readonly (Uint8Array | Int32Array | Float32Array)[]) => {
      const hash = createHash("sha256");
      for (const part of parts) hash.update(part);
      return new Uint8Array(hash.digest());
    };
    const one = sha(new Uint8Array(32), prompt.subarray(0, 256));
    const two = sha(one, prompt.subarray(256, 512));
    const routes = { rowCount: 1, layerCount: 1, expertsPerToken: 2, ids: Uint8Array.of(4, 5) };
    const turn = {
      prompt,
      sampled: Int32Array.of(7, 8),
      logProbs: Float32Array.of(-1, -2),
      routes,
      policyVersion: 3,
    };
    const header = Int32Array.of(2, 3, 600, 2, 2, 1, 1, 2, 1);
    const tail = prompt.subarray(512);
    expect(computeReceipt(turn)).toEqual(sha(header, two, tail, turn.sampled, turn.logProbs, routes.ids));
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

  it("are found wrong by four ids at a time exactly where one id at a time finds them wrong", () => {
    const row = fc.uniqueArray(fc.nat(255), { minLength: 8, maxLength: 8 });
    const experts = fc.constantFrom(8, 9, 64, 127, 128, 129, 200, 255, 256);
    fc.assert(
      fc.property(
        fc.array(row, { minLength: 1, maxLength: 4 }),
        experts,
        fc.nat(),
        fc.nat(7),
        (list, E, at, from) => {
          const layout = { layerCount: 1, expertsPerToken: 8, expertCount: E };
          const ids = list.flat();
          const isRight = (all: readonly number[]) =>
            all.every((id, place) => id < E && all.indexOf(id, place - (place % 8)) === place);
          const check = (all: readonly number[]) => () =>
            assertRoutes(rows([...all], layout), list.length + 1, layout);
          if (isRight(ids)) expect(check(ids)).not.toThrow();
          else expect(check(ids)).toThrow("does not exist");
          const folded = list.flatMap(one => one.map((_, place) => (one[0] + place) % E));
          expect(check(folded)).not.toThrow();
          const place = at % ids.length;
          const other = place - (place % 8) + from;
          const doubled = folded.with(place, folded[other]);
          if (other === place) expect(check(doubled)).not.toThrow();
          else expect(check(doubled)).toThrow("twice in a row");
        },
      ),
    );
  });
});
