// What a sandbox is on Fargate: one task that has no AWS identity. An init container copies the toolkit (our daemon with
// its own Node) into a volume; the task's image then runs twice from it, once for the agent and once, with a file system
// of its own that no agent has touched, for the verifier. Used where definitions are registered: by the deployment for
// the default image, and by the prepare stage for each image of a pool.

/** The daemons listen here, for drivers only. Containers of a task share one network, so each has its own port. */
export const AGENT_PORT = 8022;
export const VERIFIER_PORT = 8023;

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

/** Kept for the daemon and the verifier, so that what the agent runs is killed first when memory is short. */
const RESERVED_MIB = 256;
const TOOLKIT = { sourceVolume: "toolkit", containerPath: "/toolkit" };

/**
 * The request of `RegisterTaskDefinition`. No task role: nothing inside can ask for credentials, and containers are
 * never given those of the execution role. No log driver either: what an agent prints stays in its own sandbox.
 */
export function sandboxTaskDefinition(task: SandboxTask) {
  const environment = Object.entries(task.environment).map(([name, value]) => ({ name, value }));
  const daemon = (name: string, port: number, memoryMiB: number) => ({
    name,
    image: task.image,
    essential: name === "agent",
    entryPoint: ["/toolkit/sandboxd"],
    command: ["--port", String(port)],
    environment,
    mountPoints: [{ ...TOOLKIT, readOnly: true }],
    dependsOn: [{ containerName: "toolkit", condition: "SUCCESS" as const }],
    linuxParameters: { initProcessEnabled: true },
    memoryReservation: memoryMiB,
    stopTimeout: 30,
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
        memoryReservation: 64,
      },
      daemon("agent", AGENT_PORT, task.memoryMiB - 2 * RESERVED_MIB),
      daemon("verifier", VERIFIER_PORT, RESERVED_MIB),
    ],
  };
}
