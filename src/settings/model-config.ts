// Which model a run starts from.
import { z } from "zod";
import { Count, LAST_NUMBER, Rate } from "./numbers.ts";

/** A model folder: of this machine, or one that another run of the same store made. */
export const ModelSource = z
  .union([
    z.string().min(1),
    z.strictObject({
      run: z.string().min(1).meta({ description: "Name of a run in the same store." }),
      version: z
        .int()
        .nonnegative()
        .max(LAST_NUMBER)
        .optional()
        .meta({ description: "Version to take; the newest when left out." }),
    }),
  ])
  .meta({
    description: "A Hugging Face model folder, relative to this file, or {run, version} of the same store.",
  });

export const NewModel = z
  .strictObject({
    vocabSize: Count.default(512).meta({
      description: "Tokens of the byte-level BPE, special ones included; learned from the pool's texts.",
    }),
    hiddenSize: Count.default(128).meta({ description: "Width." }),
    layers: Count.default(4).meta({ description: "Layers, each with experts." }),
    heads: Count.default(4).meta({ description: "Query heads." }),
    keyValueHeads: Count.default(2).meta({ description: "Key and value heads." }),
    headDim: Count.default(32).meta({ description: "Width of a head." }),
    experts: Count.default(8).meta({ description: "Experts per layer." }),
    expertsPerToken: Count.default(2).meta({ description: "Experts each token uses." }),
    expertSize: Count.default(128).meta({ description: "Inner width of an expert." }),
    ropeTheta: Rate.default(10_000).meta({ description: "Base of the rotary position embedding." }),
    maxPositions: Count.default(512).meta({ description: "Longest context the model can be run with." }),
  })
  .meta({ description: "Shape of a model that is trained from nothing." });
export type NewModel = z.infer<typeof NewModel>;
