// Measures the CPU time of the proof of one long episode: its token stream, the sampler's receipts and the audit. The
// floor beside it hashes the episode's bytes twice, once where it is sampled and once where it is trained.
//
//   npx node bench/proof.ts
import { createHash } from "node:crypto";
import { auditEpisode } from "../src/trajectory/audit.ts";
import { PrefixHashes } from "../src/trajectory/prefix-hashes.ts";
import { computeReceipt } from "../src/trajectory/receipt.ts";
import { allocateRoutes, type Routes } from "../src/trajectory/routes.ts";
import { TokenStream } from "../src/trajectory/stream.ts";

/** Qwen3-30B-A3B. */
const LAYOUT = { layerCount: 48, expertsPerToken: 8, expertCount: 128 };
const GIVEN = 180;
const SAMPLED = 100;
const VERSION = 3;
/** The output shows the least time of each part, because other programs on the host only add to it. */
const REPEATS = 7;

function routesFrom(first: number, rowCount: number): Routes {
  const routes = allocateRoutes(rowCount, LAYOUT);
  const { layerCount, expertsPerToken: k, expertCount } = LAYOUT;
  routes.ids.forEach((_, at) => {
    const row = first + Math.floor(at / (layerCount * k));
    routes.ids[at] = (row * 13 + Math.floor(at / k) * 7 + (at % k) * 16) % expertCount;
  });
  return routes;
}

function makeTurns(count: number) {
  return Array.from({ length: count }, (_, turn) => {
    const end = (turn + 1) * (GIVEN + SAMPLED);
    const held = turn === 0 ? 0 : end - GIVEN - SAMPLED - 1;
    return {
      given: Array.from({ length: GIVEN }, (_, at) => (at * 31 + turn) % 150_000),
      sampled: Int32Array.from({ length: SAMPLED }, (_, at) => (at * 17 + turn) % 150_000),
      logProbs: Float32Array.from({ length: SAMPLED }, (_, at) => -at / 100),
      routes: routesFrom(held, end - 1 - held),
    };
  });
}

/** CPU time of all threads, garbage collection included, ms. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

const PARTS = ["stream", "receipts", "audit", "bytes"] as const;
type Times = Record<(typeof PARTS)[number], number>;

function measure(turns: ReturnType<typeof makeTurns>): Times {
  const times: Times = { stream: 0, receipts: 0, audit: 0, bytes: 0 };
  const timed = <Result>(part: keyof Times, work: () => Result): Result => {
    const begun = cpuMs();
    const result = work();
    times[part] = cpuMs() - begun;
    return result;
  };
  const recorded = timed("stream", () => {
    const stream = new TokenStream();
    for (const { given, sampled, logProbs, routes } of turns) {
      stream.appendGiven(given);
      stream.tokens();
      const receipt = new Uint8Array(32);
      stream.appendSampled({ tokens: sampled, logProbs, routes, policyVersion: VERSION, receipt });
    }
    return stream.finish(LAYOUT);
  });
  // Two copies in turn: a sampler gets every prompt in an array of its own, and compares it with the last one.
  const copies = [recorded.tokens.slice(), recorded.tokens.slice()];
  const receipts = timed("receipts", () => {
    const prefixes = new PrefixHashes();
    return turns.map((turn, index) => {
      const prompt = copies[index % 2].subarray(0, recorded.turns[index].start);
      return computeReceipt({ ...turn, prompt, policyVersion: VERSION }, prefixes);
    });
  });
  const signed = recorded.turns.map((turn, index) => ({ ...turn, receipt: receipts[index] }));
  const chunk = { ...recorded, turns: signed };
  timed("audit", () => auditEpisode([chunk], { layout: LAYOUT, policyVersion: VERSION }));
  timed("bytes", () => {
    for (let time = 0; time < 2; time++) {
      const hash = createHash("sha256");
      for (const { buffer } of [chunk.tokens, chunk.logProbs, chunk.routes?.ids ?? new Uint8Array(0)])
        hash.update(new Uint8Array(buffer));
      hash.digest();
    }
  });
  return times;
}

let previous: number | undefined;
for (const turnCount of [75, 150, 300]) {
  const turns = makeTurns(turnCount);
  const runs = Array.from({ length: REPEATS }, () => measure(turns));
  const best = Object.fromEntries(
    PARTS.map(part => [part, Math.min(...runs.map(run => run[part]))]),
  ) as Times;
  const all = best.stream + best.receipts + best.audit;
  const own = all - best.bytes;
  const shown = Object.entries({ ...best, own }).map(([name, ms]) => `${name} ${ms.toFixed(1)} ms`);
  console.log(
    `${turnCount} turns, ${turnCount * (GIVEN + SAMPLED)} tokens: ${shown.join(", ")}; ` +
      `all ${(all / best.bytes).toFixed(1)} × hashing the bytes` +
      (previous === undefined ? "" : `, own ${(own / previous).toFixed(1)} × that of half the turns`),
  );
  previous = own;
}
