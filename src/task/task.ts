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
  /** Where the agent's environment comes from. */
  readonly environment: EnvironmentSource;
  /** In order; a task without [[steps]] is one step without name. */
  readonly steps: readonly [TaskStep, ...TaskStep[]];
  /** What .harborignore keeps out of uploads: paths relative to the task folder; one covers everything below it. */
  readonly ignored: readonly string[];
  readonly hashes: TaskHashes;
  /** What the task says in vain, each with file, line and key. */
  readonly warnings: readonly string[];
}

/** Settings that hold for the whole task. What an agent or verifier is given stands in each step. */
export interface TaskConfig {
  readonly schemaVersion: string;
  readonly source: string | undefined;
  readonly package: TaskPackage | undefined;
  readonly environment: EnvironmentSettings;
  /** For the reference solution; may hold `${NAME}` (resolve-env.ts). */
  readonly solutionEnv: Readonly<Record<string, string>>;
  /** How the rewards of several steps become one: their mean per key, or those of the last step that ran. */
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
  /** Any of these will do; undefined for any at all. */
  readonly gpuTypes: readonly string[] | undefined;
  readonly tpu: { readonly type: string; readonly topology: string } | undefined;
  readonly network: NetworkPolicy;
  readonly buildTimeoutMs: number;
  /** Where commands run; undefined for the image's WORKDIR. */
  readonly workdir: string | undefined;
  /** A folder in the container. */
  readonly skillsFolder: string | undefined;
  /** May hold `${NAME}` (resolve-env.ts). */
  readonly env: Readonly<Record<string, string>>;
  readonly mcpServers: readonly McpServer[];
  /** Has to succeed before the agent is set up. */
  readonly healthcheck: Healthcheck | undefined;
}

/** As Docker's HEALTHCHECK. */
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
      /** For those who build in spite of the image. */
      readonly dockerfile: string | undefined;
      /** The folder holds files, and none that builds an image: they go to the working directory. */
      readonly uploadsFolder: boolean;
    }
  | {
      readonly kind: "compose";
      readonly folder: string;
      readonly composeFile: string;
      /** Of the main service, which otherwise is built from the Dockerfile. */
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
  /** Threshold per reward; below one of them, or without that reward, the task ends here. */
  readonly minReward: Readonly<Record<string, number>> | undefined;
  /** Runs before the agent, in addition to the environment's. */
  readonly healthcheck: Healthcheck | undefined;
  /** To collect when the step ends, besides /logs/artifacts. */
  readonly artifacts: readonly Artifact[];
  /** To upload to /tests, in this order, later ones over earlier ones. */
  readonly testsFolders: readonly string[];
  /** To upload to /solution. */
  readonly solutionFolder: string | undefined;
  /** To upload to the working directory before the agent starts; its setup.sh then runs there. */
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

/** Where tests run: in the agent's environment, or in one that the agent never saw. */
export type VerifierPlace =
  | { readonly kind: "shared" }
  | {
      readonly kind: "separate";
      readonly source: EnvironmentSource;
      readonly settings: EnvironmentSettings;
      /** The image brings /tests along: nothing is uploaded there. */
      readonly hasTestsInImage: boolean;
    };
