// The deployment that all defaults of infra/config.ts make, for estimates without one. test/infra/outputs.test.ts compares
// it with what the templates hand on.
import type { Shape } from "./cost.ts";
import type { Standing } from "./idle-cost.ts";

export const DEFAULT_SHAPE: Shape = {
  sandbox: { vcpus: 2, gib: 8, diskGib: 21 },
  driver: { vcpus: 0.5, gib: 2 },
  sampler: { vcpus: 4, gib: 8, copies: 1 },
  spot: true,
  trainingInstance: "g6e.xlarge",
  episodesPerDriver: 16,
  sandboxesAtOnce: 512,
};

export const DEFAULT_STANDING: Standing = {
  endpointZones: 2,
  alarms: 8,
  dashboards: 1,
  hostedZones: 1,
  firewallDomains: 35,
  sweepsPerHour: 6,
  imageGb: 10,
  storeGb: 10,
};
