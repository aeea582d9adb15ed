// Options of commands that play episodes on this machine. What plays them is loaded when one of these commands works: it
// takes longer to load than all else.
import { Option } from "commander";
import type { SandboxKind } from "../sandbox/open-sandboxes.ts";
import type { SamplerKind } from "./sampler-option.ts";

export interface LocalTaskOptions {
  readonly sandboxes: SandboxKind;
  readonly images?: string;
  readonly processes?: boolean;
  readonly sampler: SamplerKind;
  readonly overlap?: boolean;
}

export function overlapOption(): Option {
  return new Option(
    "--overlap",
    "play the next iteration's episodes while this one is trained (one-step asynchrony), in the whole run",
  );
}

export function processesOption(): Option {
  return new Option(
    "--processes",
    "run drivers and training jobs as processes with their containers' entry points, instead of in this process",
  );
}
