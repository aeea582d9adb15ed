// What a deployment costs in a month in which nothing runs, item by item.
import type { CostItem } from "./cost.ts";
import { MONTH_HOURS, PRICES } from "./prices.ts";

export interface Standing {
  /** Interface endpoints, each counted once per availability zone. 0 while their stack is destroyed. */
  readonly endpointZones: number;
  readonly alarms: number;
  readonly dashboards: number;
  readonly hostedZones: number;
  readonly firewallDomains: number;
  readonly imageGb: number;
  readonly storeGb: number;
}

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
    { what: "images", usd: standing.imageGb * PRICES.ecrGbMonth },
    { what: "store", usd: standing.storeGb * PRICES.s3GbMonth },
  ];
}
