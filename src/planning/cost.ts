// What a phase of a run costs, from what it used. Estimates for decisions (go on or stop), not an invoice: discounts,
// transfers and what stands idle are not in it (idle-cost.ts).
import { z } from "zod";
import { instancePrice, PRICES } from "./prices.ts";

/** What an iteration or an evaluation used, as its stages measured it. */
export interface Usage {
  readonly episodeCount: number;
  readonly groupCount: number;
  /** Over all sandboxes; attempts that failed count too. */
  readonly sandboxSeconds: number;
  readonly driverSeconds: number;
  /** From the first sandbox to the last: how long samplers were needed. */
  readonly rolloutSeconds: number;
  readonly training?: { readonly seconds: number; readonly market: "spot" | "on-demand" };
}

const Size = z.strictObject({ vcpus: z.number().positive(), gib: z.number().positive() });
type Size = z.infer<typeof Size>;

/** Sizes of a deployment's parts: what its costs are worked out from. Stacks hand it on as JSON. */
export const Shape = z.strictObject({
  sandbox: Size.extend({ diskGib: z.number().positive() }),
  driver: Size,
  sampler: Size.extend({ copies: z.int().positive() }),
  /** Of sandboxes and drivers. */
  spot: z.boolean(),
  trainingInstance: z.string(),
  episodesPerDriver: z.int().positive(),
  sandboxesAtOnce: z.int().positive(),
});
export type Shape = z.infer<typeof Shape>;

export interface CostItem {
  readonly what: string;
  readonly usd: number;
}

/** Requests of an episode: claim, arrays, transcript, reports, record, reward, admission; and what reads them. */
const PUTS_PER_EPISODE = 12;
const GETS_PER_EPISODE = 6;
/** Transitions of a shard: its child execution, and the states in it. */
const TRANSITIONS_PER_GROUP = 3;
const TRANSITIONS_PER_PHASE = 20;
/** Fargate's free part of a task's disk. */
const FREE_DISK_GIB = 20;
const HOUR = 3600;

/** @throws InputError for an instance type without a price */
export function phaseCost(usage: Usage, shape: Shape): CostItem[] {
  const { sandbox, driver, sampler, spot, trainingInstance } = shape;
  const factor = spot ? PRICES.fargateSpotFactor : 1;
  const items: CostItem[] = [
    { what: "sandboxes", usd: usage.sandboxSeconds * fargateSecond(sandbox) * factor },
    {
      what: "sandbox disks",
      usd:
        (usage.sandboxSeconds / HOUR) *
        Math.max(0, sandbox.diskGib - FREE_DISK_GIB) *
        PRICES.fargateDiskGbHour,
    },
    { what: "drivers", usd: usage.driverSeconds * fargateSecond(driver) * factor },
    { what: "driver addresses", usd: (usage.driverSeconds / HOUR) * PRICES.publicIpv4Hour },
    {
      what: "samplers",
      usd: usage.rolloutSeconds * sampler.copies * (fargateSecond(sampler) + PRICES.publicIpv4Hour / HOUR),
    },
    {
      what: "state transitions",
      usd: (usage.groupCount * TRANSITIONS_PER_GROUP + TRANSITIONS_PER_PHASE) * PRICES.stateTransition,
    },
    {
      what: "store requests",
      usd: usage.episodeCount * (PUTS_PER_EPISODE * PRICES.s3Put + GETS_PER_EPISODE * PRICES.s3Get),
    },
  ];
  if (usage.training !== undefined) {
    const { seconds, market } = usage.training;
    const spotFactor = market === "spot" ? PRICES.ec2SpotFactor : 1;
    items.push({
      what: `training (${trainingInstance}, ${market})`,
      usd: (seconds / HOUR) * instancePrice(trainingInstance).hourUsd * spotFactor,
    });
  }
  return items;
}

export function totalUsd(items: readonly CostItem[]): number {
  return items.reduce((sum, { usd }) => sum + usd, 0);
}

function fargateSecond({ vcpus, gib }: Size): number {
  return vcpus * PRICES.fargateVcpuSecond + gib * PRICES.fargateGbSecond;
}
