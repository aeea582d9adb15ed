// What a sandbox is on Fargate: one task that has no AWS identity. An init container copies the toolkit (our daemon with
// its own Node) into a volume; the task's image then runs twice from it, once for the agent and once, with a file system
// of its own that no agent has touched, for the verifier. Process 1 of both is the daemon. Used where definitions are
// registered: by the deployment for the default image, and by the prepare stage for each image of a pool.

import { type ContainerName, PORTS } from "../sandbox/fargate/task-request.ts";
import { RESERVED_MIB } from "../sandbox/fargate/task-size.ts";
import { DAEMON_ENV, daemonWords, TOOLKIT_MOUNT } from "../sandboxd/toolkit.ts";

export interface SandboxTask {
  /** Named by what it is made from, so that the same image is registered once. */
  readonly family: string;
  readonly image: string;
  readonly toolkitImage: string;
  /** CPU units; 1024 are one vCPU. */
  readonly cpu: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
  /** Pulls images, nothing else. */
  readonly executionRoleArn: string;
  /** Environment of both containers, such as a proxy's address. */
  readonly environment: Readonly<Record<string, string>>;
}

const TOOLKIT = { sourceVolume: "toolkit", containerPath: TOOLKIT_MOUNT };

/** Of Docker's default set, what reaches beyond the files and processes of a sandbox; Fargate lets all be dropped. */
const DROPPED_CAPABILITIES = ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SETPCAP"];

/** Daemons do not end by TERM; nothing is to be waited for when a driver is done with them. */
const STOP_SECONDS = 2;
/** For a copy of some files, before the others start. */
const TOOLKIT_MIB = 64;

/**
 * The request of `RegisterTaskDefinition`. No task role: nothing inside can ask for credentials, and containers are
 * never given those of the execution role. No log driver either: what an agent prints stays in its own sandbox.
 */
export function sandboxTaskDefinition(task: SandboxTask) {
  const environment = Object.entries({ ...task.environment, ...DAEMON_ENV }).map(([name, value]) => ({
    name,
    value,
  }));
  const daemon = (name: ContainerName, memory: { memory: number } | { memoryReservation: number }) => ({
    name,
    image: task.image,
    essential: name === "agent",
    entryPoint: [...daemonWords("tls", `0.0.0.0:${PORTS[name]}`)],
    command: [],
    environment,
    mountPoints: [{ ...TOOLKIT, readOnly: true }],
    dependsOn: [{ containerName: "toolkit", condition: "SUCCESS" as const }],
    // No init: as process 1 the daemon cannot be killed from inside, and it waits for orphans itself.
    linuxParameters: { initProcessEnabled: false, capabilities: { drop: DROPPED_CAPABILITIES } },
    ...memory,
    stopTimeout: STOP_SECONDS,
    user: "0",
  });
  return {
    family: task.family,
    requiresCompatibilities: ["FARGATE" as const],
    networkMode: "awsvpc" as const,
    cpu: String(task.cpu),
    memory: String(task.memoryMiB),
    executionRoleArn: task.executionRoleArn,
    ephemeralStorage: { sizeInGiB: task.diskGiB },
    runtimePlatform: { cpuArchitecture: "X86_64" as const, operatingSystemFamily: "LINUX" as const },
    volumes: [{ name: "toolkit" }],
    containerDefinitions: [
      {
        name: "toolkit",
        image: task.toolkitImage,
        essential: false,
        mountPoints: [{ ...TOOLKIT, readOnly: false }],
        memoryReservation: TOOLKIT_MIB,
      },
      // A hard limit: what an agent runs out of is its own container's memory, and its own processes are ended.
      daemon("agent", { memory: task.memoryMiB - RESERVED_MIB }),
      daemon("verifier", { memoryReservation: RESERVED_MIB - TOOLKIT_MIB }),
    ],
  };
}
