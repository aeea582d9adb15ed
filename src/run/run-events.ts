// What a run tells whoever watches it while it works.
import type { Timings } from "./records.ts";

/** The parts of an iteration that people watch and that `timings.json` measures. */
export type Stage = "plan" | "prepare" | "rollout" | "score" | "close" | "train" | "publish" | "evaluate";

export type RunEvent =
  | {
      readonly kind: "stage";
      /** Of an evaluation: the version that is evaluated. */
      readonly iteration: number;
      readonly stage: Stage;
      readonly evaluation?: string;
      readonly total?: number;
    }
  | { readonly kind: "episode" }
  | { readonly kind: "train-step"; readonly done: number; readonly total: number }
  /** A task failed; the machine decides if it is tried again. */
  | { readonly kind: "trouble"; readonly state: string; readonly text: string }
  | {
      readonly kind: "iteration";
      readonly iteration: number;
      readonly iterations: number;
      /** undefined where an earlier runner began it: nobody worked on it in between */
      readonly timings: Timings | undefined;
    };

export type OnRunEvent = (event: RunEvent) => void;
