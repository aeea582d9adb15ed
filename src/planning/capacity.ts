// How many sandboxes can be at work at once, and what limits them. Asked before a run begins: a config that cannot run
// is refused then, not after an hour of throttled starts.

export interface CapacityQuestion {
  readonly sandboxesAtOnce: number;
  readonly sandboxVcpus: number;
  readonly episodesPerDriver: number;
  readonly driverVcpus: number;
  /** Quotas of the account, in vCPUs. */
  readonly quotaVcpus: { readonly onDemand: number; readonly spot: number };
  readonly spot: boolean;
}

export interface CapacityAnswer {
  /** Sandboxes that the quotas allow at once. */
  readonly possible: number;
  /** Empty when the wanted number is possible. */
  readonly problems: readonly string[];
  /** Worth knowing, no reason to refuse. */
  readonly warnings: readonly string[];
  /** Until the last sandbox of a full wave was asked for. */
  readonly launchSeconds: number;
}

/** AWS, "Fargate task launch rate": a burst, then a steady rate, per account and region. */
const LAUNCH_BURST = 100;
const LAUNCHES_PER_SECOND = 20;

export function capacity(question: CapacityQuestion): CapacityAnswer {
  const { sandboxesAtOnce, sandboxVcpus, episodesPerDriver, driverVcpus, quotaVcpus, spot } = question;
  // A driver is shared by its episodes.
  const vcpusEach = sandboxVcpus + driverVcpus / episodesPerDriver;
  const allowed = (quota: number): number => Math.floor(quota / vcpusEach + 1e-9);
  const first = spot ? quotaVcpus.spot : quotaVcpus.onDemand;
  const possible = allowed(first);
  const needed = Math.ceil(sandboxesAtOnce * vcpusEach);
  const market = spot ? "Spot" : "on-demand";
  const problems =
    possible >= sandboxesAtOnce
      ? []
      : [
          `${sandboxesAtOnce} sandboxes at once need a quota of ${needed} Fargate ${market} vCPUs, the account has ${first}: enough for ${possible}`,
        ];
  const fallback = allowed(quotaVcpus.onDemand);
  const warnings =
    spot && fallback < sandboxesAtOnce
      ? [
          `interrupted shards are played again on demand: the quota of ${quotaVcpus.onDemand} vCPUs is enough for ${fallback} sandboxes at once`,
        ]
      : [];
  const tasks = sandboxesAtOnce + Math.ceil(sandboxesAtOnce / episodesPerDriver);
  return {
    possible,
    problems,
    warnings,
    launchSeconds: Math.max(0, tasks - LAUNCH_BURST) / LAUNCHES_PER_SECOND,
  };
}
