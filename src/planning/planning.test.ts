import { describe, expect, it } from "vitest";
import { capacity } from "./capacity.ts";
import { phaseCost, type Shape, totalUsd } from "./cost.ts";
import { idleCost } from "./idle-cost.ts";
import { instancePrice, PRICES_AS_OF, stalePrices } from "./prices.ts";

const SHAPE: Shape = {
  sandbox: { vcpus: 2, gib: 8, diskGib: 21 },
  driver: { vcpus: 0.5, gib: 1 },
  sampler: { vcpus: 4, gib: 8, copies: 1 },
  spot: false,
  trainingInstance: "p5en.48xlarge",
  episodesPerDriver: 16,
  sandboxesAtOnce: 512,
};

/** 4,096 episodes of half an hour, 16 to a driver, all in one wave. */
const WAVE = {
  episodeCount: 4096,
  groupCount: 256,
  sandboxSeconds: 4096 * 1800,
  driverSeconds: 256 * 1800,
  rolloutSeconds: 1800,
};

describe("cost of a phase", () => {
  it("reproduces a wave that was worked out by hand", () => {
    const usd = Object.fromEntries(phaseCost(WAVE, SHAPE).map(item => [item.what, item.usd]));
    // 1800 s · (2 · 0.000011244 + 8 · 0.000001235) = 0.0582624 $ an episode
    expect(usd.sandboxes).toBeCloseTo(4096 * 0.0582624, 6); // 238.64 $
    // 1 GB above the free 20, half an hour: 0.0000555 $ an episode
    expect(usd["sandbox disks"]).toBeCloseTo(0.227328, 9);
    // 256 · 1800 s · (0.5 · 0.000011244 + 1 · 0.000001235)
    expect(usd.drivers).toBeCloseTo(3.1597056, 7);
    expect(usd["driver addresses"]).toBeCloseTo(256 * 0.0025, 9);
    // 1800 s · (4 · 0.000011244 + 8 · 0.000001235) + half an hour of an address
    expect(usd.samplers).toBeCloseTo(0.0987408 + 0.0025, 9);
    // (256 · 3 + 20) · 0.000025
    expect(usd["state transitions"]).toBeCloseTo(0.0197, 9);
    // 12 · 0.000005 + 6 · 0.0000004 an episode
    expect(usd["store requests"]).toBeCloseTo(4096 * 0.0000624, 9);
    expect(totalUsd(phaseCost(WAVE, SHAPE))).toBeCloseTo(243.046355, 5);
  });

  it("prices training by instance, hour and market", () => {
    const training = (market: "spot" | "on-demand") =>
      phaseCost({ ...WAVE, training: { seconds: 3600, market } }, SHAPE).at(-1)?.usd;
    expect(training("on-demand")).toBeCloseTo(63.296, 6);
    expect(training("spot")).toBeCloseTo(63.296 * 0.6, 6);
  });

  it("refuses to guess a price", () => {
    expect(() => instancePrice("p9.huge")).toThrow(/no price for this instance type.*p9\.huge/);
  });

  it("says when the prices are too old", () => {
    const days = (count: number) => new Date(Date.parse(PRICES_AS_OF) + count * 86_400_000);
    expect(stalePrices(days(90))).toBeUndefined();
    expect(stalePrices(days(91))).toContain("91 days ago");
  });
});

describe("idle cost", () => {
  it("is that of the endpoints first of all", () => {
    const standing = {
      endpointZones: 2,
      alarms: 8,
      dashboards: 1,
      hostedZones: 1,
      firewallDomains: 44,
      sweepsPerHour: 6,
      imageGb: 10,
      storeGb: 100,
    };
    // by hand: 14.60 + 0.80 + 3 + 0.50 + 0.022 + 1 + 2.30, and 4,380 sweeps of 0.0000002 + 0.25 · 0.0000133334
    const sweeps = 0.000876 + 0.014600073;
    expect(totalUsd(idleCost(standing))).toBeCloseTo(22.222 + sweeps, 6);
    expect(totalUsd(idleCost({ ...standing, endpointZones: 0 }))).toBeCloseTo(7.622 + sweeps, 6);
  });
});

describe("capacity", () => {
  const question = {
    sandboxesAtOnce: 512,
    sandboxVcpus: 2,
    episodesPerDriver: 16,
    driverVcpus: 0.5,
    quotaVcpus: { onDemand: 4000, spot: 4000 },
    spot: true,
  };

  it("counts a driver's share for each sandbox", () => {
    // 2 + 0.5 / 16 = 2.03125 vCPUs each; 4000 / 2.03125 = 1969.2
    expect(capacity(question)).toMatchObject({ possible: 1969, problems: [], warnings: [] });
    expect(capacity({ ...question, quotaVcpus: { onDemand: 4000, spot: 1040 } }).problems).toEqual([]);
  });

  it("names the quota that is missing", () => {
    const { problems } = capacity({ ...question, quotaVcpus: { onDemand: 4000, spot: 1039 } });
    expect(problems).toEqual([
      "512 sandboxes at once need a quota of 1040 Fargate Spot vCPUs, the account has 1039: enough for 511",
    ]);
  });

  it("warns when interrupted shards have nowhere to go, and does not refuse", () => {
    const answer = capacity({ ...question, quotaVcpus: { onDemand: 6, spot: 4000 } });
    expect(answer.problems).toEqual([]);
    expect(answer.warnings[0]).toContain("enough for 2 sandboxes");
  });

  it("says how long a wave takes to start", () => {
    // 4,096 sandboxes and 256 drivers: 100 at once, the rest at 20 a second
    const { launchSeconds } = capacity({ ...question, sandboxesAtOnce: 4096 });
    expect(launchSeconds).toBeCloseTo((4096 + 256 - 100) / 20, 9);
  });
});
