// Makes everything ready that a phase's episodes need. A machine asks again until it is.
import { z } from "zod";
import type { PhasePrefix } from "../run/keys.ts";
import { CountText, environment, NumberText, Text } from "../settings/environment.ts";
import { Phase, SandboxesText, type StageServices, stage } from "./stage.ts";

export interface PrepareServices extends StageServices {
  /** Sandbox images, and whatever else is waited for. @returns how many things are still being made */
  readonly makeReady: (
    phase: PhasePrefix,
    services: Pick<StageServices, "store" | "signal">,
  ) => Promise<number>;
}

export const prepare = stage({
  input: z.strictObject({ phase: Phase }),
  output: z.strictObject({ ready: z.boolean(), waiting: z.int() }),
  settings: environment("the prepare stage", {
    storeUrl: ["T1_STORE_URL", Text],
    sandboxes: ["T1_SANDBOXES", SandboxesText],
    cluster: ["T1_CLUSTER", Text],
    samplerService: ["T1_SAMPLER_SERVICE", Text],
    samplerCopies: ["T1_SAMPLER_COPIES", CountText],
    buildProject: ["T1_BUILD_PROJECT", Text],
    taskRepository: ["T1_TASK_REPOSITORY", Text],
    toolkitImage: ["T1_TOOLKIT_IMAGE", Text],
    families: ["T1_SANDBOX_FAMILIES", Text],
    /** In CPU units, of which 1024 are one vCPU. */
    sandboxCpu: ["T1_SANDBOX_CPU", NumberText],
    sandboxMemoryMiB: ["T1_SANDBOX_MEMORY_MIB", NumberText],
    sandboxDiskGiB: ["T1_SANDBOX_DISK_GIB", NumberText],
    sandboxExecutionRole: ["T1_SANDBOX_EXECUTION_ROLE", Text],
  }),
  run: async ({ phase }, _: unknown, { makeReady, ...services }: PrepareServices) => {
    const waiting = await makeReady(phase, services);
    return { ready: waiting === 0, waiting };
  },
});
