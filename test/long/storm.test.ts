// Two thousand episodes in one iteration whose store is a bucket behind a bad network, while services throttle, Spot and
// tasks are lost, sandboxes, trainer and runner are killed.
import { rmSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { openStore } from "../../src/store/open-store.ts";
import { type Fault, type FaultProxy, type SeenRequest, startFaultProxy } from "../store/fault-proxy.ts";
import { findSeaweedfs, startSeaweedfs } from "../store/seaweedfs.ts";
import { checkStormyIteration, checkTrainedOnAdmittedOnly } from "../storm/check-storm.ts";
import { RUN, runStorm, type StormOptions } from "../storm/storm.ts";

const EPISODES = 2000;
const STORM: StormOptions = {
  ...{ episodes: EPISODES, concurrency: 8, killAt: [0.1, 0.4, 0.75], killInTraining: true, speed: 10 },
  ...{ killSandboxEveryMs: 1500, storeFaultShare: 0.0005 },
};
/** One request in so many meets a fault. */
const REQUESTS_PER_FAULT = 50;
/** Removing tens of thousands of files takes this long at most. */
const CLEANUP_MS = 300_000;
const MOST_REQUESTS = 400_000;

/** Faults of S3 that any request can meet. */
const ANY: readonly Fault[] = [
  { kind: "refuse", status: 503, code: "SlowDown" },
  { kind: "refuse", status: 500, code: "InternalError" },
  { kind: "cut" },
];
/** Faults of writes. After a lost answer a conditional write gets 412 when it is sent again. */
const WRITES: readonly Fault[] = [
  ...ANY,
  { kind: "refuse", status: 503, code: "ServiceUnavailable", afterShare: 0.5 },
  { kind: "refuse", status: 409, code: "ConditionalRequestConflict" },
  { kind: "lose-answer", as: "cut" },
  { kind: "lose-answer", as: "internal-error" },
];

it(`${EPISODES} episodes in a folder`, async () => {
  const storm = await runStorm(STORM);
  onTestFinished(() => rmSync(storm.folder, { recursive: true, force: true }), CLEANUP_MS);
  const store = await openStore(storm.storeUrl);
  expect([storm.code, storm.kills], storm.stderr).toEqual([0, 4]);
  console.log(JSON.stringify({ ...storm, failures: await checkStormyIteration(store, RUN) }, null, 1));
  await checkTrainedOnAdmittedOnly(store, RUN);
});

const found = await findSeaweedfs();
const why = "missing" in found ? ` (skipped: ${found.missing})` : "";

it.skipIf("missing" in found)(`${EPISODES} episodes in a bucket${why}`, async () => {
  const server = await startSeaweedfs("program" in found ? found.program : "");
  onTestFinished(() => server.stop());
  const proxy = await startFaultProxy(server.endpoint);
  onTestFinished(() => proxy.stop());
  const isWrite = ({ method }: { readonly method: string }): boolean => method === "PUT";
  const writes = planFaults(proxy, isWrite, WRITES);
  const others = planFaults(proxy, request => !isWrite(request), ANY);
  const bucket = await server.createBucket();
  const storeUrl = `s3://${bucket}/t1?endpoint=${encodeURIComponent(proxy.endpoint)}`;
  const storm = await runStorm({ ...STORM, storeUrl });
  onTestFinished(() => rmSync(storm.folder, { recursive: true, force: true }), CLEANUP_MS);
  const writeCount = proxy.seen.filter(isWrite).length;
  const met = [...writes.slice(0, writeCount), ...others.slice(0, proxy.seen.length - writeCount)];
  expect([storm.code, storm.kills], storm.stderr).toEqual([0, 4]);
  const calm = await openStore(`s3://${bucket}/t1?endpoint=${encodeURIComponent(server.endpoint)}`);
  const failures = await checkStormyIteration(calm, RUN);
  console.log(
    JSON.stringify({ ...storm, failures, requests: proxy.seen.length, met: countByName(met) }, null, 1),
  );
});

function planFaults(
  proxy: FaultProxy,
  matches: (request: SeenRequest) => boolean,
  faults: readonly Fault[],
): readonly (Fault | undefined)[] {
  const random = new RandomStream(deriveSeed("storm", "bucket", faults.length));
  const planned = Array.from({ length: MOST_REQUESTS }, () =>
    random.integer(REQUESTS_PER_FAULT) === 0 ? faults[random.integer(faults.length)] : undefined,
  );
  for (let at = 0; at < planned.length; at += 1000) proxy.plan(matches, ...planned.slice(at, at + 1000));
  return planned;
}

function countByName(faults: readonly (Fault | undefined)[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const fault of faults) {
    if (fault === undefined) continue;
    const name = fault.kind === "refuse" ? `${fault.status} ${fault.code}` : fault.kind;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
