// Names of the engines, apart from engines.ts: a function reads a run's config, and its bundle may hold no engine's code.
export const ENGINE_NAMES = ["onnx"] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];
