// Unit prices, us-east-1, USD, on demand unless a name says otherwise. One table, one date: a price that changes is
// changed here and nowhere else.
import { InputError } from "../failure/errors.ts";

/** When the table was last compared with its sources. */
export const PRICES_AS_OF = "2026-11-29";

/** Older than this the table is not trusted without a word. */
const STALE_DAYS = 90;

/** Source of each: AWS's price pages, read at the dates in the comments. */
export const PRICES = {
  // Fargate, Linux on x86; ECS price page, 2026-09-20. At least a minute is billed.
  fargateVcpuSecond: 0.000011244,
  fargateGbSecond: 0.000001235,
  // Ephemeral storage above 20 GB; vantage.sh, 2026.
  fargateDiskGbHour: 0.000111,
  // Spot moves; 70 % is the most that AWS names, so half of that is what a plan should count on.
  fargateSpotFactor: 0.65,
  // GPU instances on Spot; p5en was seen at 0.42 of its price in 2026-08, smaller ones at 0.5 to 0.7.
  ec2SpotFactor: 0.6,
  // VPC price page, 2026-04.
  publicIpv4Hour: 0.005,
  interfaceEndpointZoneHour: 0.01,
  interfaceEndpointGb: 0.01,
  // Lambda on ARM; price page copy, 2026-05-05.
  lambdaRequest: 0.2 / 1e6,
  lambdaGbSecond: 0.0000133334,
  // Step Functions, Standard.
  stateTransition: 0.025 / 1000,
  // S3 Standard.
  s3Put: 0.005 / 1000,
  s3Get: 0.0004 / 1000,
  s3GbMonth: 0.023,
  // ECR storage.
  ecrGbMonth: 0.1,
  // CloudWatch: the first ten alarms and three dashboards of an account cost nothing.
  alarmMonth: 0.1,
  dashboardMonth: 3,
  // Route 53: a private zone, and DNS Firewall's stored domains.
  hostedZoneMonth: 0.5,
  firewallDomainMonth: 0.0005,
} as const;

/** Hours of a month, as AWS counts them. */
export const MONTH_HOURS = 730;

interface Instance {
  readonly hourUsd: number;
  readonly vcpus: number;
  readonly gpus: number;
}

/** GPU instances; table of 2026-01-19, p4d confirmed 2026-11-09, p5en by dstack PR#4110 of 2026-08-06. */
const INSTANCES = {
  "g5.xlarge": { hourUsd: 1.006, vcpus: 4, gpus: 1 },
  "g5.48xlarge": { hourUsd: 16.288, vcpus: 192, gpus: 8 },
  "g6.xlarge": { hourUsd: 0.8048, vcpus: 4, gpus: 1 },
  "g6e.xlarge": { hourUsd: 1.861, vcpus: 4, gpus: 1 },
  "g6e.2xlarge": { hourUsd: 2.242, vcpus: 8, gpus: 1 },
  "g6e.4xlarge": { hourUsd: 3.004, vcpus: 16, gpus: 1 },
  "g6e.12xlarge": { hourUsd: 10.493, vcpus: 48, gpus: 4 },
  "g6e.24xlarge": { hourUsd: 15.066, vcpus: 96, gpus: 4 },
  "g6e.48xlarge": { hourUsd: 30.131, vcpus: 192, gpus: 8 },
  "p4d.24xlarge": { hourUsd: 21.9576, vcpus: 96, gpus: 8 },
  "p4de.24xlarge": { hourUsd: 27.4471, vcpus: 96, gpus: 8 },
  "p5.4xlarge": { hourUsd: 6.88, vcpus: 16, gpus: 1 },
  "p5.48xlarge": { hourUsd: 55.04, vcpus: 192, gpus: 8 },
  "p5en.48xlarge": { hourUsd: 63.296, vcpus: 192, gpus: 8 },
  "p6-b200.48xlarge": { hourUsd: 113.9328, vcpus: 192, gpus: 8 },
} as const satisfies Record<string, Instance>;
export type InstanceName = keyof typeof INSTANCES;
export const INSTANCE_NAMES = Object.keys(INSTANCES) as [InstanceName, ...InstanceName[]];

/** @throws InputError for a type that is not in the table: a guessed price is worse than none */
export function instancePrice(name: string): Instance {
  const known = INSTANCE_NAMES.find(candidate => candidate === name);
  if (known !== undefined) return INSTANCES[known];
  throw new InputError({
    what: "no price for this instance type",
    where: name,
    expected: `expected one of ${INSTANCE_NAMES.join(", ")}`,
    fix: "add its price and source to src/planning/prices.ts",
  });
}

/** @returns a warning when the table is too old to be trusted */
export function stalePrices(today: Date): string | undefined {
  const days = Math.floor((today.getTime() - Date.parse(PRICES_AS_OF)) / 86_400_000);
  if (days <= STALE_DAYS) return undefined;
  return `prices are of ${PRICES_AS_OF}, ${days} days ago: compare src/planning/prices.ts with AWS's pages`;
}
