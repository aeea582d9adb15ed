// How the policy works on a task: what it is told, what it may use, and how its tokens are drawn.
import { z } from "zod";
import { Count, Rate } from "./numbers.ts";

const Summary = z
  .strictObject({
    freeTokens: Count.default(8000).meta({
      description:
        "A summary is made when fewer tokens of the context are left. 8000: Terminus-2's. It has to hold what a turn adds and the three calls, or each summary would forget the newest turns; this is checked.",
    }),
    answerTokens: Count.default(1024).meta({
      description:
        "Sampled tokens of each of the three calls (summary, questions, answers). One that needs more is dropped, and the work goes on from the screen and a few sentences.",
    }),
    train: z.boolean().default(true).meta({
      description:
        "Train the calls like turns, under the episode's reward. On: the policy chose those words, and what they leave out decides the rest of the episode. Off: they are recorded, with their receipts, and no part of any loss.",
    }),
  })
  .meta({
    description:
      "What happens when the context is full (protocols terminus-json and terminus-xml). Left out: the episode ends as cut, so that no run pays for summaries it did not ask for. Given, even empty: the policy hands its work over to itself in a new conversation, and the episode goes on in a new chunk.",
  });

export const Agent = z
  .strictObject({
    protocol: z.enum(["compact", "terminus-json", "terminus-xml", "bash-tool"]).default("compact").meta({
      description:
        "How answers and observations are written. compact: one shell command per answer, or done; made for small models, hence the default. terminus-json, terminus-xml: keystrokes into a terminal and its screen, as Harbor's Terminus-2, which T1 trained under. bash-tool: the tool call bash, for models whose chat template knows tools (Qwen3); an answer without a call ends the episode.",
    }),
    turns: Count.default(60).meta({
      description: "Answers per episode. 60: one of the values T1 names (it names several).",
    }),
    answerTokens: Count.default(1024).meta({
      description: "Sampled tokens per answer; an answer that needs more ends the episode as cut.",
    }),
    contextTokens: Count.default(8192).meta({ description: "Tokens of a whole episode." }),
    observationTokens: Count.default(1024).meta({
      description:
        "Tokens of one observation; longer ones lose their middle. Terminus-2 by itself allows 10,000 bytes, which most vocabularies make 2,500 to 5,000 tokens of.",
    }),
    commandSeconds: Rate.default(30).meta({
      description:
        "Time of one command; then it is ended and the agent told so. In a terminal nothing is ended: there each command says how long to wait, at most 60 s.",
    }),
    episodeSeconds: Rate.optional().meta({
      description:
        "Time of an episode, where its task does not set one. Waiting for the sampler does not count.",
    }),
    outputBytes: Count.default(65_536).meta({
      description: "Kept output of one command; more loses its middle.",
    }),
    endOfTurn: z
      .string()
      .min(1)
      .default("<|im_end|>")
      .meta({ description: "Special token that ends an answer; it must be the one of the chat template." }),
    system: z.string().optional().meta({
      description:
        "System message. Left out: none, small models need no instructions they were not trained on.",
    }),
    summary: Summary.optional(),
  })
  .prefault({})
  .meta({ description: "The harness around the policy." });

export const Sampling = z
  .strictObject({
    temperature: z.number().min(0).default(1).meta({
      description: "1: the distribution that is trained. 0 (evaluation only) takes the likeliest token.",
    }),
    topP: z.number().gt(0).max(1).default(1).meta({
      description: "Training allows only 1: anything else samples from another distribution than is trained.",
    }),
    topK: z
      .int()
      .nonnegative()
      .default(0)
      .meta({ description: "Training allows only 0 (all tokens), for the same reason." }),
  })
  .prefault({})
  .meta({ description: "How tokens are drawn." });
