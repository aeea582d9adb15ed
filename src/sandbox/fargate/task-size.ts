// Sizes that Fargate has, and the one that a sandbox needs.
// Source: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/fargate-tasks-services.html, "Task CPU and memory"
import { InputError } from "../../failure/errors.ts";
import type { SandboxSpec } from "../sandbox.ts";

/** Memory in MiB by CPU units; 1024 units are one vCPU. */
export const FARGATE_MEMORY: Readonly<Record<number, readonly [min: number, max: number]>> = {
  256: [512, 2048],
  512: [1024, 4096],
  1024: [2048, 8192],
  2048: [4096, 16_384],
  4096: [8192, 30_720],
  8192: [16_384, 61_440],
  16384: [32_768, 122_880],
};

/** Of a task, what the agent's container may not use: the verifier and its daemon start in it. */
export const RESERVED_MIB = 256;
/** Of a task's smallest disk, for the images and what the platform keeps there. */
const IMAGE_GIB = 8;
const SMALLEST_DISK_GIB = 21;
const LARGEST_DISK_GIB = 200;
const GIB = 2 ** 30;
const MIB = 2 ** 20;

export interface TaskSize {
  readonly cpu?: string;
  readonly memory?: string;
  readonly ephemeralStorage?: { readonly sizeInGiB: number };
}

/**
 * What has to be more than the task definition has. A disk is never smaller than the definition's.
 *
 * @throws InputError for more than Fargate has
 */
export function taskSize({
  cpus,
  memoryBytes,
  diskBytes,
}: Pick<SandboxSpec, "cpus" | "memoryBytes" | "diskBytes">): TaskSize {
  const diskGiB = Math.ceil(diskBytes / GIB) + IMAGE_GIB;
  if (diskGiB > LARGEST_DISK_GIB) throw tooLarge(`${diskGiB - IMAGE_GIB} GiB of disk`);
  return {
    ...(diskGiB > SMALLEST_DISK_GIB ? { ephemeralStorage: { sizeInGiB: diskGiB } } : {}),
    ...(cpus === undefined && memoryBytes === undefined ? {} : computeSize(cpus ?? 0, memoryBytes ?? 0)),
  };
}

function computeSize(cpus: number, memoryBytes: number): TaskSize {
  const wantedMiB = Math.ceil(memoryBytes / MIB) + RESERVED_MIB;
  for (const [cpu, [min, max]] of Object.entries(FARGATE_MEMORY)) {
    if (Number(cpu) < cpus * 1024 || wantedMiB > max) continue;
    // Above a vCPU memory comes in whole GiB; from 8 vCPUs on in steps of 4, from 16 of 8.
    const stepMiB = Number(cpu) >= 16_384 ? 8192 : Number(cpu) >= 8192 ? 4096 : 1024;
    const memoryMiB = Math.max(min, Math.ceil(wantedMiB / stepMiB) * stepMiB);
    return { cpu, memory: `${memoryMiB}` };
  }
  throw tooLarge(`${cpus} vCPU with ${Math.ceil(memoryBytes / MIB)} MiB`);
}

function tooLarge(wanted: string): InputError {
  return new InputError({
    what: `Fargate has no task of that size: ${wanted}`,
    where: "specification of a sandbox",
    expected: "at most 16 vCPU, 119 GiB of memory and 192 GiB of disk",
    fix: "leave the task out of the pool",
  });
}
