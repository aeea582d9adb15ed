// The schema of task.toml, format 1.4 and all before it, in the file's own names. It takes and refuses what Harbor
// 0.26.0 takes and refuses; unknown keys are reported as such, and read-task-toml.ts makes them warnings.
import { z } from "zod";
import { Artifact, MAIN_SERVICE, ServiceName } from "./artifact.ts";
import { AllowedHosts, EnvironmentToml, EnvTable, HealthcheckToml, NetworkMode } from "./environment-toml.ts";
import { LaxNumber, toNumber, User } from "./lax.ts";
import { stepNameFault, stepNameKey } from "./step-name.ts";

/** The newest format that this schema describes. */
export const SCHEMA_VERSION = "1.4";

const PACKAGE_NAME = /^[a-zA-Z0-9][a-zA-Z0-9._-]*\/[a-zA-Z0-9][a-zA-Z0-9._-]*$/;

const Package = z.strictObject({
  name: z.string().refine(name => PACKAGE_NAME.test(name) && !name.includes(".."), {
    error: "a name of the form org/name, of letters, digits, '.', '_' and '-'",
  }),
  version: z.string().min(1).optional(),
  description: z.string().default(""),
  authors: z.array(z.strictObject({ name: z.string(), email: z.string().optional() })).default([]),
  keywords: z.array(z.string()).default([]),
});

const phaseNetwork = { network_mode: NetworkMode.optional(), allowed_hosts: AllowedHosts.optional() };

const Agent = z
  .strictObject({ ...phaseNetwork, timeout_sec: LaxNumber.optional(), user: User.optional() })
  .refine(isPhaseNetwork, {
    path: ["allowed_hosts"],
    error: 'no allowed_hosts unless this table says network_mode = "allowlist"',
  });

const Collect = z.strictObject({
  command: z.string(),
  service: ServiceName.default(MAIN_SERVICE),
  timeout_sec: LaxNumber.default(60),
  user: User.optional(),
});

const Verifier = z
  .strictObject({
    ...phaseNetwork,
    timeout_sec: LaxNumber.default(600),
    env: EnvTable.default({}),
    user: User.optional(),
    environment_mode: z.enum(["shared", "separate"]).optional(),
    environment: EnvironmentToml.optional(),
    collect: z.array(Collect).default([]),
  })
  .refine(isPhaseNetwork, {
    path: ["allowed_hosts"],
    error: 'no allowed_hosts unless this table says network_mode = "allowlist"',
  })
  .refine(({ environment_mode, environment }) => environment_mode !== "shared" || environment === undefined, {
    path: ["environment_mode"],
    error: '"separate", or no [verifier.environment] table',
  });
export type VerifierToml = z.output<typeof Verifier>;

/** A bare number is the threshold of the reward named "reward". */
const MinReward = z.preprocess(
  value => (toNumber(value) === undefined ? value : { reward: value }),
  z.record(z.string(), LaxNumber),
);

const Step = z.strictObject({
  name: z.string().superRefine((name, context) => {
    const message = stepNameFault(name);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  }),
  agent: Agent.prefault({}),
  verifier: Verifier.prefault({}),
  min_reward: MinReward.optional(),
  healthcheck: HealthcheckToml.optional(),
  artifacts: z.array(Artifact).default([]),
});
export type StepToml = z.output<typeof Step>;

const Steps = z.array(Step).superRefine((steps, context) => {
  const seen = new Set<string>();
  for (const [index, { name }] of steps.entries()) {
    const key = stepNameKey(name);
    if (seen.has(key)) {
      const message = "a name that no other step has, case and Unicode composition aside";
      context.addIssue({ code: "custom", message, path: [index, "name"] });
    }
    seen.add(key);
  }
});

export const TaskToml = z.preprocess(
  renameVersion,
  z.strictObject({
    schema_version: z.string().default(SCHEMA_VERSION),
    task: Package.optional(),
    metadata: z.record(z.string(), z.unknown()).default({}),
    verifier: Verifier.prefault({}),
    agent: Agent.prefault({}),
    environment: EnvironmentToml.prefault({}),
    solution: z.strictObject({ env: EnvTable.default({}) }).prefault({}),
    source: z.string().optional(),
    multi_step_reward_strategy: z.enum(["mean", "final"]).optional(),
    steps: Steps.default([]),
    artifacts: z.array(Artifact).default([]),
  }),
);
export type TaskToml = z.output<typeof TaskToml>;

/** Early files say `version`; where both are given, `schema_version` counts. */
function renameVersion(file: unknown): unknown {
  if (typeof file !== "object" || file === null || !("version" in file)) return file;
  const { version, ...rest } = file;
  return { schema_version: version, ...rest };
}

/** In a phase an empty list counts too: without a mode of its own the phase has nothing the list could belong to. */
function isPhaseNetwork({
  network_mode,
  allowed_hosts,
}: z.output<z.ZodObject<typeof phaseNetwork>>): boolean {
  if (network_mode === undefined) return allowed_hosts === undefined;
  return network_mode === "allowlist" || (allowed_hosts ?? []).length === 0;
}
