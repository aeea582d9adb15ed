// Translates the names and units of task.toml to those of task.ts, table by table.
import type { EnvironmentToml, HealthcheckToml } from "./environment-toml.ts";
import type { NetworkPolicy } from "./network.ts";
import type { EnvironmentSettings, Healthcheck, TaskConfig } from "./task.ts";
import type { TaskToml } from "./task-toml.ts";

const MIB = 1024 ** 2;

export function deriveConfig(toml: TaskToml): TaskConfig {
  return {
    schemaVersion: toml.schema_version,
    source: toml.source,
    package: toml.task === undefined ? undefined : { ...toml.task, version: toml.task.version },
    environment: deriveEnvironment(toml.environment),
    solutionEnv: toml.solution.env,
    rewardStrategy: toml.multi_step_reward_strategy ?? "mean",
  };
}

export function deriveEnvironment(toml: EnvironmentToml): EnvironmentSettings {
  return {
    os: toml.os ?? "linux",
    cpus: toml.cpus,
    memoryBytes: toml.memory_mb === undefined ? undefined : toml.memory_mb * MIB,
    storageBytes: toml.storage_mb === undefined ? undefined : toml.storage_mb * MIB,
    gpus: toml.gpus,
    gpuTypes: toml.gpu_types,
    tpu: toml.tpu,
    network: deriveBaseline(toml),
    buildTimeoutMs: toMs(toml.build_timeout_sec),
    workdir: toml.workdir,
    skillsFolder: toml.skills_dir,
    env: toml.env,
    mcpServers: toml.mcp_servers,
    healthcheck: toml.healthcheck === undefined ? undefined : deriveHealthcheck(toml.healthcheck),
  };
}

export function deriveHealthcheck(toml: HealthcheckToml): Healthcheck {
  return {
    command: toml.command,
    intervalMs: toMs(toml.interval_sec),
    timeoutMs: toMs(toml.timeout_sec),
    startPeriodMs: toMs(toml.start_period_sec),
    startIntervalMs: toMs(toml.start_interval_sec),
    retries: toml.retries,
  };
}

/** A phase's own policy; undefined when the phase uses that of its environment. */
export function derivePhase(toml: {
  readonly network_mode?: NetworkPolicy["kind"] | undefined;
  readonly allowed_hosts?: readonly string[] | undefined;
}): NetworkPolicy | undefined {
  return toml.network_mode === undefined ? undefined : policy(toml.network_mode, toml.allowed_hosts);
}

/** Whole milliseconds; infinite stays infinite. */
export function toMs(seconds: number): number {
  return Math.round(seconds * 1000);
}

/** `allow_internet`, the older key, counts only where neither of the newer two is given. */
function deriveBaseline({ network_mode, allowed_hosts, allow_internet }: EnvironmentToml): NetworkPolicy {
  const isNew = network_mode !== undefined || allowed_hosts !== undefined;
  if (!isNew && allow_internet === false) return { kind: "no-network" };
  return policy(network_mode ?? "public", allowed_hosts);
}

function policy(kind: NetworkPolicy["kind"], hosts: readonly string[] = []): NetworkPolicy {
  return kind === "allowlist" ? { kind, hosts } : { kind };
}
