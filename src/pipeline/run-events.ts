// What a run tells whoever watches it while it works.
import type { EpisodeRecord, Timings } from "./records.ts";

export type Stage = "plan" | "prepare" | "rollout" | "score" | "close" | "train" | "publish" | "evaluate";

export type RunEvent =
  | { readonly kind: "stage"; readonly iteration: number; readonly stage: Stage; readonly total?: number }
  | { readonly kind: "episode"; readonly record: EpisodeRecord }
  | { readonly kind: "train-step"; readonly done: number; readonly total: number }
  | {
      readonly kind: "iteration";
      readonly iteration: number;
      readonly iterations: number;
      readonly timings: Timings;
    };

export type OnRunEvent = (event: RunEvent) => void;
