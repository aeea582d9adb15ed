// The programs of a deployment's containers by what each is told: the state machine says which work to do (a job), the
// task or job definition says where (settings). Definitions in infra/ write these variables, containers read them, and a
// laptop reads the jobs in its own process.
import { availableParallelism } from "node:os";
import { z } from "zod";
import { SANDBOX_KINDS } from "../sandbox/open-sandboxes.ts";
import {
  CountText,
  environment,
  IntegersText,
  IntegerText,
  ListText,
  NumberText,
  numberText,
  Text,
} from "../settings/environment.ts";
import { Phase } from "./stage.ts";

const Threads = CountText.default(availableParallelism());
const Url = z.url();

/** What a driver plays: one shard of a phase's episodes. */
export const DRIVER_JOB = environment("a driver", {
  phase: ["T1_PHASE", Phase],
  episodes: ["T1_EPISODES", IntegersText],
  policyVersion: ["T1_POLICY_VERSION", IntegerText],
  /** Where this driver runs. A shard that Spot interrupted is played again on demand, and its sandboxes too. */
  market: ["T1_MARKET", z.enum(["FARGATE_SPOT", "FARGATE"]).optional()],
});

export const DRIVER_SETTINGS = environment("a driver", {
  storeUrl: ["T1_STORE_URL", Text],
  sandboxes: ["T1_SANDBOXES", z.enum(["fargate", ...SANDBOX_KINDS])],
  imagesFile: ["T1_IMAGES", z.string().optional()],
  deadlineSeconds: ["T1_DEADLINE_SECONDS", NumberText.default(7200)],
  /** A served sampler; without one the driver samples in its own process. */
  samplerUrl: ["T1_SAMPLER_URL", Url.optional()],
  samplerKey: ["T1_SAMPLER_KEY", Text.optional()],
  threads: ["T1_THREADS", Threads],
});

/** Where a driver's sandboxes are Fargate tasks. */
export const FARGATE_SETTINGS = environment("a driver", {
  cluster: ["T1_CLUSTER", Text],
  families: ["T1_SANDBOX_FAMILIES", Text],
  subnets: ["T1_SANDBOX_SUBNETS", ListText],
  securityGroups: ["T1_SANDBOX_GROUP", ListText],
  toolkitImage: ["T1_TOOLKIT_IMAGE", Text],
  /** Of a deployment with a proxy: the group that sandboxes join where their task may use the network. */
  networkedGroups: ["T1_NETWORKED_GROUP", ListText.optional()],
  proxyUrl: ["T1_PROXY_URL", Url.optional()],
  sandboxMarket: ["T1_SANDBOX_MARKET", z.enum(["spot-first", "on-demand"])],
  /** ECS sets it in every container. */
  metadataUrl: ["ECS_CONTAINER_METADATA_URI_V4", z.string().optional()],
});

/** What a training job trains on: one closed iteration. */
export const TRAINER_JOB = environment("a trainer", {
  run: ["T1_RUN", Text],
  iteration: ["T1_ITERATION", IntegerText],
});

export const TRAINER_SETTINGS = environment("a trainer", {
  storeUrl: ["T1_STORE_URL", Text],
  threads: ["T1_THREADS", Threads],
  device: ["T1_DEVICE", z.enum(["cpu", "cuda"]).default("cpu")],
});

export const SAMPLER_SETTINGS = environment("a sampler", {
  storeUrl: ["T1_STORE_URL", Text],
  /** Key of the policy to begin with, and its version; without them the first driver names one. */
  policy: ["T1_POLICY", z.string().endsWith("/").optional()],
  policyVersion: ["T1_POLICY_VERSION", IntegerText.optional()],
  /** Clients send it as a bearer token. */
  key: ["T1_SAMPLER_KEY", Text.optional()],
  threads: ["T1_THREADS", Threads],
  cacheBytes: ["T1_CACHE_BYTES", CountText.default(2 ** 31)],
  host: ["T1_HOST", Text.default("0.0.0.0")],
  port: ["T1_PORT", numberText(z.int().min(0).max(65_535)).default(8_000)],
  /** 110: ten seconds below the 120 s after which Fargate kills at most. */
  graceSeconds: ["T1_GRACE_SECONDS", CountText.default(110)],
});
