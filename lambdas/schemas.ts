// Parts of events and environments that several functions share.
import { z } from "zod";
import { type PhasePrefix, parsePhase } from "../src/run/keys.ts";

export const Run = z.string().min(1);
export const Iteration = z.int().nonnegative();

/** A phase prefix, as plan returned it. */
export const Phase = z.string().transform((prefix): PhasePrefix => {
  parsePhase(prefix);
  return prefix as PhasePrefix;
});

/** Environment variables are text. */
export const NumberText = z.coerce.number().nonnegative();
export const FlagText = z.enum(["true", "false"]).transform(text => text === "true");
