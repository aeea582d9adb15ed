// Who samples for a run on this machine.
import { Option } from "commander";

const SAMPLER_KINDS = ["in-process", "served"] as const;
export type SamplerKind = (typeof SAMPLER_KINDS)[number];

export function samplerOption(): Option {
  return new Option(
    "--sampler <kind>",
    "who samples: each process that plays episodes for itself, or one served sampler that all ask, as in a deployment",
  )
    .choices(SAMPLER_KINDS)
    .default("in-process");
}
