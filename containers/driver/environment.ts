// What a driver is told: by its task definition (infra/stacks/sandboxes.ts), and by the state machine for each group.
import { availableParallelism } from "node:os";
import { z } from "zod";

const List = z.string().transform(text => text.split(",").filter(part => part !== ""));
const Items = List.refine(items => items.length > 0, "names with commas");

export const DRIVER_ENVIRONMENT = {
  T1_STORE_URL: z.string().min(1),
  T1_PHASE: z.string(),
  T1_EPISODES: z.string().regex(/^\d+(,\d+)*$/, "numbers of episodes with commas"),
  T1_POLICY_VERSION: z.coerce.number().int().nonnegative(),
  T1_SANDBOXES: z.enum(["fargate", "bubblewrap", "docker"]),
  T1_IMAGES: z.string().optional(),
  T1_DEADLINE_SECONDS: z.coerce.number().positive().default(7200),
  /** A served sampler; without it this process samples. */
  T1_SAMPLER_URL: z.url().optional(),
  T1_SAMPLER_KEY: z.string().min(1).optional(),
  T1_THREADS: z.coerce.number().int().positive().default(availableParallelism()),
};

/** Only with sandboxes on Fargate. */
export const FARGATE_ENVIRONMENT = {
  T1_CLUSTER: z.string().min(1),
  T1_SANDBOX_FAMILIES: z.string().min(1),
  T1_SANDBOX_SUBNETS: Items,
  T1_SANDBOX_GROUP: Items,
  /** In deployments with a proxy: the group of sandboxes that may speak to it, and its address. */
  T1_NETWORKED_GROUP: z.string().min(1).optional(),
  T1_PROXY_URL: z.url().optional(),
  T1_TOOLKIT_IMAGE: z.string().min(1),
  /** Of the deployment. */
  T1_SANDBOX_MARKET: z.enum(["spot-first", "on-demand"]),
  /** In which this driver runs: on demand is where a group is played again that Spot has interrupted. */
  T1_MARKET: z.enum(["FARGATE_SPOT", "FARGATE"]).optional(),
  /** Set by ECS in every container. */
  ECS_CONTAINER_METADATA_URI_V4: z.string().optional(),
};
