import { availableParallelism } from "node:os";
import { z } from "zod";
import { DEVICES } from "../../src/tensor/session.ts";

export const TRAINER_ENVIRONMENT = {
  T1_STORE_URL: z.string().min(1),
  /** What to train on: overrides of the job. */
  T1_RUN: z.string().min(1),
  T1_ITERATION: z.coerce.number().int().nonnegative(),
  T1_THREADS: z.coerce.number().int().positive().default(availableParallelism()),
  T1_DEVICE: z.enum(DEVICES).default("cpu"),
};
