import { availableParallelism } from "node:os";
import { z } from "zod";

const Count = z.coerce.number().int().positive();

export const SAMPLER_ENVIRONMENT = {
  T1_STORE_URL: z.string().min(1),
  /** Key of the policy to begin with, and its version; without them the first driver brings one. */
  T1_POLICY: z.string().endsWith("/").optional(),
  T1_POLICY_VERSION: z.coerce.number().int().nonnegative().optional(),
  /** Clients then send it as a bearer token. */
  T1_SAMPLER_KEY: z.string().min(1).optional(),
  T1_THREADS: Count.default(availableParallelism()),
  T1_CACHE_BYTES: Count.default(2 ** 31),
  T1_HOST: z.string().min(1).default("0.0.0.0"),
  T1_PORT: z.coerce.number().int().min(0).max(65_535).default(8_000),
  /** Fargate waits 120 s at most before it kills. */
  T1_GRACE_SECONDS: Count.default(110),
};
