// A Harbor task as the rest of the code sees it: times in milliseconds, sizes in bytes, defaults filled in, and one
// list of steps whether the task has one or many. load.ts makes it from a folder.
import type { Artifact } from "./artifact.ts";
import type { OperatingSystem } from "./environment-toml.ts";
import type { TaskHashes } from "./hash-parts.ts";
import type { McpServer } from "./mcp-server.ts";
import type { NetworkPolicy } from "./network.ts";

export interface Task {
  /** `[task].name` ("org/name") or, without it, the folder's name. */
  readonly name: string;
  /** Absolute, symbolic links resolved. */
  readonly folder: string;
  readonly config: TaskConfig;
  /** The free [metadata] table as it stands in the file; integers above 2^53 are bigint, dates are Date. */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The source of the agent's environment. */
  readonly environment: EnvironmentSource;
  /** Steps in order; a task without [[steps]] is one step without a name. */
  readonly steps: readonly [TaskStep, ...TaskStep[]];
  /** Paths that .harborignore keeps out of uploads, relative to the task folder; a folder covers everything below. */
  readonly ignored: readonly string[];
  readonly hashes: TaskHashes;
  /** A warning with file, line and key for each setting without effect. */
  readonly warnings: readonly string[];
}

/** Settings of the whole task. Each step holds those of its agent and verifier. */
export interface TaskConfig {
  readonly schemaVersion: string;
  readonly source: string | undefined;
  readonly package: TaskPackage | undefined;
  readonly environment: EnvironmentSettings;
  /** Environment of the reference solution; may hold `${NAME}` (resolve-env.ts). */
  readonly solutionEnv: Readonly<Record<string, string>>;
  /** Combines the rewards of several steps: their mean per key, or those of the last step that ran. */
  readonly rewardStrategy: "mean" | "final";
}

interface TaskPackage {
  readonly name: string;
  readonly version: string | undefined;
  readonly description: string;
  readonly authors: readonly { readonly name: string; readonly email?: string | undefined }[];
  readonly keywords: readonly string[];
}

/** Resources are undefined when the task leaves them to the sandbox; Harbor gives them no default in any format. */
export interface EnvironmentSettings {
  readonly os: OperatingSystem;
  readonly cpus: number | undefined;
  readonly memoryBytes: number | undefined;
  readonly storageBytes: number | undefined;
  readonly gpus: number | undefined;
  /** Acceptable types; undefined for any. */
  readonly gpuTypes: readonly string[] | undefined;
  readonly tpu: { readonly type: string; readonly topology: string } | undefined;
  readonly network: NetworkPolicy;
  readonly buildTimeoutMs: number;
  /** Working directory of commands; undefined for the image's WORKDIR. */
  readonly workdir: string | undefined;
  /** A folder in the container. */
  readonly skillsFolder: string | undefined;
  /** May hold `${NAME}` (resolve-env.ts). */
  readonly env: Readonly<Record<string, string>>;
  readonly mcpServers: readonly McpServer[];
  /** Must succeed before the agent is set up. */
  readonly healthcheck: Healthcheck | undefined;
}

/** Same as Docker's HEALTHCHECK. */
export interface Healthcheck {
  readonly command: string;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Failures within this time of the start do not count. */
  readonly startPeriodMs: number;
  readonly startIntervalMs: number;
  readonly retries: number;
}

/** Paths are absolute. */
export type EnvironmentSource =
  | { readonly kind: "dockerfile"; readonly folder: string; readonly dockerfile: string }
  | {
      readonly kind: "image";
      readonly image: string;
      /** undefined when the task has no such folder */
      readonly folder: string | undefined;
      /** For providers that build in spite of the image. */
      readonly dockerfile: string | undefined;
      /** The folder holds files but no Dockerfile: they go to the working directory. */
      readonly uploadsFolder: boolean;
    }
  | {
      readonly kind: "compose";
      readonly folder: string;
      readonly composeFile: string;
      /** Image of the main service, which otherwise is built from the Dockerfile. */
      readonly image: string | undefined;
      readonly dockerfile: string | undefined;
    };

/** One instruction and its verification, with the settings of task and step already merged. */
export interface TaskStep {
  /** undefined in a task without [[steps]] */
  readonly name: string | undefined;
  /** The file's text without its canary lines, otherwise unchanged. */
  readonly instruction: string;
  readonly agent: AgentSettings;
  readonly verifier: VerifierSettings;
  /** Threshold per reward; the task ends here below one of them, or without that reward. */
  readonly minReward: Readonly<Record<string, number>> | undefined;
  /** Runs before the agent, in addition to the environment's. */
  readonly healthcheck: Healthcheck | undefined;
  /** Collected when the step ends, besides /logs/artifacts. */
  readonly artifacts: readonly Artifact[];
  /** Uploaded to /tests in this order, later ones over earlier ones. */
  readonly testsFolders: readonly string[];
  /** Uploaded to /solution. */
  readonly solutionFolder: string | undefined;
  /** Uploaded to the working directory before the agent starts; its setup.sh then runs there. */
  readonly workdirFolder: string | undefined;
  /** An ATIF trajectory that the agent continues. */
  readonly trajectoryFile: string | undefined;
}

export interface AgentSettings {
  /** undefined for no limit */
  readonly timeoutMs: number | undefined;
  /** Name or numeric id; undefined for the image's USER. */
  readonly user: string | number | undefined;
  readonly network: NetworkPolicy;
}

export interface VerifierSettings {
  readonly timeoutMs: number;
  readonly user: string | number | undefined;
  readonly network: NetworkPolicy;
  /** May hold `${NAME}` (resolve-env.ts). */
  readonly env: Readonly<Record<string, string>>;
  /** Commands that gather evidence after the agent and before the artifacts are collected. */
  readonly collect: readonly CollectCommand[];
  readonly place: VerifierPlace;
}

interface CollectCommand {
  readonly command: string;
  /** Compose service. */
  readonly service: string;
  readonly timeoutMs: number;
  readonly user: string | number | undefined;
}

/** The place of tests: the agent's environment, or one that the agent never saw. */
export type VerifierPlace =
  | { readonly kind: "shared" }
  | {
      readonly kind: "separate";
      readonly source: EnvironmentSource;
      readonly settings: EnvironmentSettings;
      /** The image contains /tests, so nothing is uploaded there. */
      readonly hasTestsInImage: boolean;
    };
