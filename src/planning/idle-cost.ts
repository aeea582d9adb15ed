// What a deployment costs in a month in which nothing runs, item by item.
import { z } from "zod";
import type { CostItem } from "./cost.ts";
import { MONTH_HOURS, PRICES } from "./prices.ts";

const Count = z.number().nonnegative();

export const Standing = z.strictObject({
  /** Interface endpoints, each counted once per availability zone. 0 while their stack is destroyed. */
  endpointZones: Count,
  alarms: Count,
  dashboards: Count,
  hostedZones: Count,
  firewallDomains: Count,
  /** Runs of the sweeper, of a second each with a quarter of a GB. */
  sweepsPerHour: Count,
  imageGb: Count,
  storeGb: Count,
});
export type Standing = z.infer<typeof Standing>;

const SWEEP_GB_SECONDS = 0.25;

/** The free allowances of an account are not counted: another deployment may use them. */
export function idleCost(standing: Standing): CostItem[] {
  return [
    {
      what: "interface endpoints for image pulls (destroy the pull-endpoints stack to save them)",
      usd: standing.endpointZones * MONTH_HOURS * PRICES.interfaceEndpointZoneHour,
    },
    { what: "alarms", usd: standing.alarms * PRICES.alarmMonth },
    { what: "dashboard", usd: standing.dashboards * PRICES.dashboardMonth },
    { what: "private DNS zone", usd: standing.hostedZones * PRICES.hostedZoneMonth },
    { what: "DNS firewall", usd: standing.firewallDomains * PRICES.firewallDomainMonth },
    {
      what: "sweeper",
      usd:
        standing.sweepsPerHour *
        MONTH_HOURS *
        (PRICES.lambdaRequest + SWEEP_GB_SECONDS * PRICES.lambdaGbSecond),
    },
    { what: "images", usd: standing.imageGb * PRICES.ecrGbMonth },
    { what: "store", usd: standing.storeGb * PRICES.s3GbMonth },
  ];
}
