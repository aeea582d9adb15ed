// The schema of a deployment's config: each key with its default and the reason for it. Settings of a run have a schema of
// their own (src/config/run-config.ts), because a deployment serves many runs.
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";
import { InputError } from "../src/failure/errors.ts";
import { INSTANCE_NAMES } from "../src/planning/prices.ts";
import { FARGATE_MEMORY } from "../src/sandbox/fargate/task-size.ts";

const Count = z.int().positive();
const Usd = z.number().positive();

function taskSize(cpu: number, memoryMiB: number, what: string) {
  return z
    .strictObject({
      cpu: Count.default(cpu).meta({ description: "CPU units; 1024 are one vCPU." }),
      memoryMiB: Count.default(memoryMiB).meta({ description: "MiB." }),
    })
    .refine(size => {
      const range = FARGATE_MEMORY[size.cpu];
      return range !== undefined && size.memoryMiB >= range[0] && size.memoryMiB <= range[1];
    }, "not a size that Fargate has: 256 CPU units with 512-2048 MiB, 512 with 1024-4096, 1024 with 2048-8192, 2048 with 4096-16384, 4096 with 8192-30720")
    .prefault({})
    .meta({ description: what });
}

const Network = z
  .strictObject({
    cidr: z
      .string()
      .regex(/^\d+\.\d+\.\d+\.\d+\/16$/)
      .default("10.42.0.0/16")
      .meta({
        description: "Addresses of the VPC. A /16 holds four /18 sandbox subnets or one with room to spare.",
      }),
    zones: z.int().min(1).max(3).default(1).meta({
      description:
        "Availability zones. 1: endpoints are paid per zone, and an episode that loses its zone is played again. More help when one zone runs out of capacity.",
    }),
    sandboxMask: z.int().min(18).max(26).default(20).meta({
      description: "Size of a sandbox subnet. /20: 4,091 addresses, one per sandbox.",
    }),
    egress: z
      .discriminatedUnion("profile", [
        z.strictObject({ profile: z.literal("none") }),
        z.strictObject({
          profile: z.literal("proxy"),
          domains: z.array(z.string().regex(/^\.?[a-z0-9.-]+$/)).min(1),
        }),
      ])
      .default({ profile: "none" })
      .meta({
        description:
          "What sandboxes can reach. none: nothing, so tasks that need the network are refused. proxy: listed domains through a proxy.",
      }),
  })
  .prefault({})
  .meta({ description: "Where everything runs." });

const Sandboxes = z
  .strictObject({
    size: taskSize(
      2048,
      8192,
      "Of one sandbox. 2 vCPU and 8 GiB: what most public terminal tasks ask for, so that few need their own.",
    ),
    diskGiB: z.int().min(21).max(200).default(21).meta({
      description: "Disk. 21: the smallest that can be set; 20 are free.",
    }),
    atOnce: Count.default(512).meta({
      description:
        "Sandboxes at once. 512: an iteration's episodes in one wave. Preflight compares it with quotas and addresses.",
    }),
    spot: z.boolean().default(true).meta({
      description:
        "Sandboxes and drivers on Spot first. On: up to 70 % off, and an interrupted shard is played again on demand.",
    }),
    maxHours: z.number().positive().max(24).default(3).meta({
      description:
        "The sweeper ends every sandbox of this age, whatever its driver says. 3: twice T1's limit.",
    }),
  })
  .prefault({})
  .meta({ description: "Where episodes act." });

const Drivers = z
  .strictObject({
    size: taskSize(512, 2048, "Of one driver: it waits for sandboxes and sampler most of the time."),
    episodes: z.int().min(1).max(64).default(16).meta({
      description:
        "Episodes per driver. 16: a driver costs little against its sandboxes, and a lost one repeats few episodes.",
    }),
    maxHours: z.number().positive().max(12).default(2).meta({
      description: "Limit of a shard. 2: an agent's hour, its verifiers, and waiting for capacity.",
    }),
    toleratedFailurePercentage: z.int().min(0).max(100).default(10).meta({
      description:
        "Shards that may fail before a rollout is given up. 10: an iteration survives some lost hosts, and stops early when everything fails.",
    }),
  })
  .prefault({})
  .meta({ description: "Tasks that play shards of episodes." });

const Sampler = z
  .strictObject({
    size: taskSize(4096, 8192, "Of the served ONNX sampler."),
    copies: Count.max(64).default(1).meta({
      description: "Samplers while a run is at work; none otherwise.",
    }),
  })
  .prefault({})
  .meta({ description: "Where tokens are sampled, for models that fit a CPU." });

const Training = z
  .strictObject({
    instances: z
      .array(z.enum(INSTANCE_NAMES))
      .min(1)
      .default(["g6e.xlarge", "g6e.2xlarge"])
      .meta({ description: "Instance types Batch may take. g6e: one L40S with 48 GB." }),
    gpus: Count.max(8).default(1).meta({ description: "GPUs of the job." }),
    vcpus: Count.default(3).meta({ description: "vCPUs of the job; below the instance's." }),
    memoryMiB: Count.default(28_000).meta({ description: "Memory of the job; below the instance's." }),
    sharedMemoryMiB: Count.default(4096).meta({ description: "/dev/shm." }),
    maxVcpus: Count.default(64).meta({ description: "Of all training jobs of the deployment together." }),
    spot: z.boolean().default(true).meta({
      description: "Spot first, on demand after a lost host or when none is to be had in time.",
    }),
    waitMinutes: z.int().min(10).max(1440).default(30).meta({
      description: "A job that waits longer for a machine is cancelled; from Spot it moves to on-demand.",
    }),
    maxHours: z.number().positive().default(6).meta({ description: "Limit of one iteration's training." }),
  })
  .prefault({})
  .meta({ description: "Where policies are trained." });

const Pipeline = z
  .strictObject({
    iterationsPerExecution: z.int().min(1).max(800).default(200).meta({
      description:
        "Iterations until a fresh execution takes over. 200: an iteration writes about 25 events, and a history ends at 25,000.",
    }),
    iterationHours: z.number().positive().default(24).meta({ description: "Limit of an iteration." }),
    runDays: z
      .number()
      .positive()
      .max(365)
      .default(90)
      .meta({ description: "Limit of one execution of a run." }),
  })
  .prefault({})
  .meta({ description: "The state machines." });

const Storage = z
  .strictObject({
    retain: z.boolean().default(true).meta({
      description: "The store survives `cdk destroy`. On: trajectories and policies cannot be made again.",
    }),
    mapResultDays: Count.default(14).meta({
      description: "Bookkeeping of Distributed Maps. 14: as long as an execution can be redriven.",
    }),
    logDays: Count.default(90).meta({ description: "Access logs and stop reasons." }),
    coldDays: Count.default(60).meta({
      description:
        "Trajectories move to infrequent access after this; reports and re-scoring read them rarely.",
    }),
  })
  .prefault({})
  .meta({ description: "The store." });

const Budget = z
  .strictObject({
    monthlyUsd: Usd.optional().meta({
      description:
        "AWS Budgets tells `mail` at 50, 80 and 100 % of it. Left out: none. A run's own budget is an input of the run.",
    }),
    mail: z.email().optional().meta({ description: "Where alarms and budget notices go." }),
  })
  .prefault({})
  .meta({ description: "Money." });

export const DeploymentConfig = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,15}$/)
      .default("t1")
      .meta({ description: "First part of every name; two deployments in one region need two." }),
    imageTag: z
      .string()
      .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/)
      .default("main")
      .meta({ description: "Tag of our own images; a deployment that changes it takes the new ones." }),
    network: Network,
    sandboxes: Sandboxes,
    drivers: Drivers,
    sampler: Sampler,
    training: Training,
    pipeline: Pipeline,
    storage: Storage,
    budget: Budget,
  })
  .superRefine((config, context) => {
    const addresses = config.network.zones * subnetAddresses(config.network.sandboxMask);
    if (config.sandboxes.atOnce > addresses) {
      context.addIssue({
        code: "custom",
        path: ["sandboxes", "atOnce"],
        message: `expected at most the addresses of the sandbox subnets (${addresses}), got ${config.sandboxes.atOnce}; raise network.zones or lower network.sandboxMask`,
      });
    }
    if (config.sandboxes.maxHours <= config.drivers.maxHours) {
      context.addIssue({
        code: "custom",
        path: ["sandboxes", "maxHours"],
        message: `expected more than drivers.maxHours (${config.drivers.maxHours}): the sweeper would end sandboxes in use`,
      });
    }
  });
export type DeploymentConfig = z.infer<typeof DeploymentConfig>;

/** AWS keeps five addresses of every subnet. */
function subnetAddresses(mask: number): number {
  return 2 ** (32 - mask) - 5;
}

/**
 * @param file YAML or JSON; undefined takes every default
 * @throws InputError listing every problem with its key
 */
export function readDeploymentConfig(file: string | undefined): DeploymentConfig {
  const parsed = DeploymentConfig.safeParse(file === undefined ? {} : (parse(readText(file)) ?? {}));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "(top)"}: ${message}`);
  throw new InputError({
    what: "invalid deployment config",
    where: file ?? "defaults",
    expected: problems.join("; "),
    fix: "docs/operate.md lists the keys",
  });
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new InputError(
      {
        what: "cannot read the deployment config",
        where: file,
        expected: "a YAML file",
        fix: "cdk synth -c config=FILE",
      },
      { cause },
    );
  }
}
