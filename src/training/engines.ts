// The engines that there are. A new one is a folder beside `onnx/` and a line here and in engine-names.ts.
import type { Engine } from "./engine.ts";
import type { EngineName } from "./engine-names.ts";

export interface EngineOptions {
  readonly threads: number;
  readonly device?: "cpu" | "cuda";
}

const ENGINES = {
  onnx: async options => (await import("./onnx/engine.ts")).createOnnxEngine(options),
} satisfies Record<EngineName, (options: EngineOptions) => Promise<Engine>>;

/** Loads the engine's code and nothing else: models are read when something is trained. */
export function openEngine(name: EngineName, options: EngineOptions): Promise<Engine> {
  return ENGINES[name](options);
}

/** Versions of what an engine computes with, for a run's record. */
export async function softwareOf(name: EngineName): Promise<Engine["software"]> {
  const engine = await openEngine(name, { threads: 1 });
  try {
    return engine.software;
  } finally {
    await engine[Symbol.asyncDispose]();
  }
}
