// The contract of every sampler, as tests: an episode cannot tell a sampler in process from one behind a server. The model has layers
// without experts, which the routes leave out.
import { expect, it } from "vitest";
import { routeLayout } from "../../src/model/routing.ts";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import type { GenerateRequest, Generation, PolicyReference, Sampler } from "../../src/sampler/sampler.ts";
import { auditEpisode } from "../../src/trajectory/audit.ts";
import { computeReceipt } from "../../src/trajectory/receipt.ts";
import { TokenStream } from "../../src/trajectory/stream.ts";
import type { StoredPolicies } from "../sampler/policies.ts";

export interface SamplerUnderTest extends Pick<StoredPolicies, "model" | "policies" | "store"> {
  readonly sampler: Sampler;
  /** Another handle on the same sampler, as a second driver has it; in process there is only one. */
  readonly second: Sampler;
}

const SAMPLING = { temperature: 1, topP: 1, topK: 0 };
/** Float sums may differ in the last bits with the company that a sequence has in its batch. */
const BATCH_TOLERANCE = 2e-5;

/** @param underTest opened before, since loading a model takes longer than a test */
export function samplerContract(underTest: () => SamplerUnderTest): void {
  const ask = (more: Partial<GenerateRequest> & { readonly seed: string }): GenerateRequest => ({
    tokens: Int32Array.of(5, 6, 7),
    routesHeld: 0,
    sampling: SAMPLING,
    stop: [],
    maxNewTokens: 6,
    policy: underTest().policies[0],
    ...more,
    seed: deriveSeed(more.seed),
  });

  it("gives the same for the same tokens and seed, bit for bit, and other tokens for another seed", async () => {
    const { sampler, second } = underTest();
    const one = await sampler.generate(ask({ seed: "same", maxNewTokens: 20 }));
    const again = await second.generate(ask({ seed: "same", maxNewTokens: 20 }));
    expectEqual(again, one);
    const other = await sampler.generate(ask({ seed: "other", maxNewTokens: 20 }));
    expect([...other.tokens]).not.toEqual([...one.tokens]);
  });

  it("signs what it returns: ids, log-probs, routes and version", async () => {
    const { sampler } = underTest();
    const request = ask({ seed: "receipt" });
    const { tokens: sampled, logProbs, routes, policyVersion, receipt } = await sampler.generate(request);
    const turn = { prompt: request.tokens, sampled, logProbs, routes, policyVersion };
    expect(Buffer.from(receipt).equals(computeReceipt(turn))).toBe(true);
  });

  it("ends with a stop token, or says that the length ran out", async () => {
    const { sampler } = underTest();
    const [top] = (await sampler.generate(ask({ seed: "top", sampling: { ...SAMPLING, temperature: 0 } })))
      .tokens;
    const stopped = await sampler.generate(
      ask({ seed: "stop", sampling: { ...SAMPLING, temperature: 0 }, stop: [top ?? 0] }),
    );
    expect([stopped.finishReason, ...stopped.tokens]).toEqual(["stop", top]);
    const cut = await sampler.generate(ask({ seed: "length", maxNewTokens: 4 }));
    expect([cut.finishReason, cut.tokens.length]).toEqual(["length", 4]);
  });

  it("takes the likeliest token at temperature 0, keeps to top-k and top-p", async () => {
    const { sampler } = underTest();
    const greedy = { ...SAMPLING, temperature: 0 };
    const one = await sampler.generate(ask({ seed: "a", sampling: greedy }));
    for (const sampling of [greedy, { ...SAMPLING, topK: 1 }, { ...SAMPLING, topP: 1e-6 }])
      expect([...(await sampler.generate(ask({ seed: "b", sampling }))).tokens]).toEqual([...one.tokens]);
  });

  it("serves episodes of many drivers at once as if each were alone", async () => {
    const { sampler, second, model } = underTest();
    const play = async (index: number): Promise<readonly Generation[]> => {
      const random = new RandomStream(deriveSeed("episode", index));
      const draw = (count: number) => Array.from({ length: count }, () => random.integer(model.vocabSize));
      const stream = new TokenStream();
      stream.appendGiven(draw(3 + index * 5));
      const turns: Generation[] = [];
      for (let turn = 0; turn < 3; turn++) {
        const request = ask({
          seed: `${index}-${turn}`,
          tokens: stream.tokens(),
          routesHeld: stream.routesHeld,
        });
        const generation = await (index % 2 === 0 ? sampler : second).generate(request);
        turns.push(generation);
        stream.appendSampled(generation);
        stream.appendGiven(draw(2));
      }
      const layout = routeLayout(model);
      const [audit] = auditEpisode([stream.finish(layout)], { layout, policyVersion: 1 });
      expect(audit.receiptCount).toBe(3);
      return turns;
    };
    const indices = [0, 1, 2, 3, 4, 5];
    const together = await Promise.all(indices.map(play));
    for (const index of indices) {
      const alone = await play(index);
      alone.forEach((turn, at) => {
        const other = together[index]?.[at];
        expect([...(other?.tokens ?? [])]).toEqual([...turn.tokens]);
        expect(other?.routes).toEqual(turn.routes);
        turn.logProbs.forEach((logProb, place) => {
          expect(Math.abs(logProb - (other?.logProbs[place] ?? Number.NaN))).toBeLessThan(BATCH_TOLERANCE);
        });
      });
    }
  });

  it("gives up a request whose caller leaves, and still answers the others", async () => {
    const { sampler, second } = underTest();
    const leaving = new AbortController();
    const long = { maxNewTokens: 40 };
    const left = sampler.generate(ask({ seed: "left", ...long, signal: leaving.signal }));
    const others = [sampler, second].map(other => other.generate(ask({ seed: "stays", ...long })));
    // At once: a small policy has sampled all of it within some 20 ms.
    setTimeout(() => leaving.abort(), 1);
    await expect(left).rejects.toMatchObject({ name: "AbortError" });
    for (const other of others) expect((await other).tokens).toHaveLength(40);
  });

  it("does not begin for a caller that has left already", async () => {
    const gone = ask({ seed: "gone", maxNewTokens: 40, signal: AbortSignal.abort() });
    await expect(underTest().sampler.generate(gone)).rejects.toMatchObject({ name: "AbortError" });
  });

  it("says which weights sampled a turn, also where they change within an episode (prime-rl#1650)", async () => {
    const { sampler, policies } = underTest();
    const [one, two] = policies;
    const first = await sampler.generate(ask({ seed: "first", policy: one }));
    const tokens = Int32Array.from([5, 6, 7, ...first.tokens, 1]);
    const next = (policy: PolicyReference, routesHeld: number) =>
      sampler.generate(ask({ seed: "second", tokens, routesHeld, policy }));
    const held = tokens.length - 2;
    const swapped = await next(two, held);
    expect([first.policyVersion, swapped.policyVersion]).toEqual([1, 2]);
    // A sampler without a cache answers the same, so nothing of the first weights' cache is in the answer.
    const fresh = await next(two, 0);
    expect([...swapped.tokens]).toEqual([...fresh.tokens]);
    expect([...swapped.logProbs]).toEqual([...fresh.logProbs]);
    expect(swapped.routes?.rowCount).toBe(fresh.routes && fresh.routes.rowCount - held);
    const back = await next(one, held);
    expect(back.policyVersion).toBe(1);
    expect([...back.logProbs]).not.toEqual([...swapped.logProbs]);
  });

  it("refuses a policy that is not there, and goes on with the one that is", async () => {
    const { sampler } = underTest();
    const missing = ask({ seed: "x", policy: { version: 9, prefix: "runs/demo/policies/000009/" } });
    await expect(sampler.generate(missing)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(/no such (model|policy)/),
    });
    expect((await sampler.generate(ask({ seed: "x" }))).policyVersion).toBe(1);
  });

  it("refuses a policy that is not whole as nothing that is tried again, and takes it once it is repaired", async () => {
    const { sampler, store, policies } = underTest();
    const [one, two] = policies;
    // Ask for a policy that was not served before, because the sampler does not read a policy in use again.
    const prefix = `runs/${deriveSeed("corrupt", Math.random())}/policies/000003/`;
    const bodyOf = async (key: string) => (await store.get(key))?.body ?? new Uint8Array();
    for await (const { key } of store.list(two.prefix))
      await store.put(key.replace(two.prefix, prefix), await bodyOf(key), { ifNoneMatch: "*" });
    const weights = `${prefix}model.safetensors`;
    const whole = await bodyOf(weights);
    const replace = async (body: Uint8Array) => {
      await store.delete(weights);
      await store.put(weights, body, { ifNoneMatch: "*" });
    };
    await replace(whole.map((byte, at) => (at === whole.length - 7 ? byte ^ 1 : byte)));
    const other = ask({ seed: "x", policy: { version: 3, prefix } });
    await expect(sampler.generate(other)).rejects.toMatchObject({
      name: "InputError",
      message: expect.stringMatching(
        /corrupt checkpoint: runs\/.*model\.safetensors: expected .*SHA-256.*got.*\n.*fix: restore/,
      ),
    });
    expect((await sampler.generate(ask({ seed: "x", policy: one }))).policyVersion).toBe(1);
    await replace(whole);
    expect((await sampler.generate(other)).policyVersion).toBe(3);
  });
}

export function expectEqual(a: Generation, b: Generation): void {
  expect([...a.tokens]).toEqual([...b.tokens]);
  // Compare bits: a log-prob that was rounded on the way would pass a comparison by value.
  expect(Buffer.from(a.logProbs.buffer, a.logProbs.byteOffset, a.logProbs.byteLength)).toEqual(
    Buffer.from(b.logProbs.buffer, b.logProbs.byteOffset, b.logProbs.byteLength),
  );
  expect(a.routes).toEqual(b.routes);
  expect([a.finishReason, a.policyVersion]).toEqual([b.finishReason, b.policyVersion]);
  expect(Buffer.from(a.receipt).toString("hex")).toBe(Buffer.from(b.receipt).toString("hex"));
}
