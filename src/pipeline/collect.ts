// The part that an iteration and an evaluation share: prepare the planned tasks, run their episodes, score and close.

import { createDemonstrator, NO_ROUTES } from "../agent/demonstrator.ts";
import { chatOptions } from "../agent/find-protocol.ts";
import type { RunConfig } from "../config/run-config.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import { CONFIG_FILE, parseJson } from "../model/checkpoint.ts";
import { parseModelConfig } from "../model/config.ts";
import { readStoredFiles, readTextFormat } from "../model/model-folder.ts";
import { routeLayout } from "../model/routing.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import type { PolicyReference, Sampler } from "../sampler/sampler.ts";
import type { SandboxProvider } from "../sandbox/sandbox.ts";
import type { PhasePrefix } from "../store/keys.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import { close } from "./close.ts";
import { readPlan } from "./plan.ts";
import { prepare } from "./prepare.ts";
import type { ClosedPhase } from "./records.ts";
import { type RunEpisodesServices, runEpisodes } from "./run-episodes.ts";
import type { OnRunEvent, Stage } from "./run-events.ts";
import { score } from "./score.ts";
import type { ImageServices } from "./task-image.ts";

export interface CollectServices {
  readonly store: ObjectStore;
  readonly sandboxes: SandboxProvider;
  readonly images: ImageServices;
  readonly sampler: Sampler;
  readonly holder: RunEpisodesServices["holder"];
  readonly onEvent: OnRunEvent;
}

export interface CollectInput {
  readonly phase: PhasePrefix;
  readonly poolFolder: string;
  readonly config: Pick<RunConfig, "agent" | "sampling" | "rollout" | "reward" | "verifier">;
  readonly policy: PolicyReference;
  readonly text: EpisodeText;
  /** Episodes are played by their tasks' demonstrations instead of the policy. */
  readonly demonstrations: boolean;
  readonly enough?: number;
  readonly minimum: number;
  /** Times a stage and announces it. */
  readonly stage: <T>(name: Stage, work: () => Promise<T>, total?: number) => Promise<T>;
}

/** How a policy reads and writes text, and the shape of its routes. */
export interface EpisodeText {
  readonly tokenizer: Tokenizer;
  readonly chat: ChatFormat;
  readonly layout: RouteLayout;
}

export async function openText(
  store: ObjectStore,
  { prefix }: PolicyReference,
  { agent }: Pick<RunConfig, "agent">,
): Promise<EpisodeText> {
  const files = await readStoredFiles(store, prefix);
  const model = parseModelConfig(parseJson(files, CONFIG_FILE, prefix), `${prefix}${CONFIG_FILE}`);
  return { ...readTextFormat(files, prefix, chatOptions(agent)), layout: routeLayout(model) };
}

export async function collect(input: CollectInput, services: CollectServices): Promise<ClosedPhase> {
  const { phase, poolFolder, config, policy, text, demonstrations, enough, minimum, stage } = input;
  const { store, sandboxes, holder, onEvent } = services;
  const plan = await readPlan(store, phase);
  const prepared = await stage("prepare", () =>
    prepare(poolFolder, plan, { ...services.images, demonstration: demonstrations }),
  );
  const samplerFor: RunEpisodesServices["samplerFor"] = ({ demonstration }) =>
    demonstration === undefined
      ? services.sampler
      : createDemonstrator(demonstration, text.chat, text.tokenizer);
  await stage(
    "rollout",
    () =>
      runEpisodes(
        { phase, plan, prepared, config, policy, layout: demonstrations ? NO_ROUTES : text.layout, enough },
        {
          store,
          sandboxes,
          ...text,
          samplerFor,
          holder,
          onEpisode: record => onEvent({ kind: "episode", record }),
        },
      ),
    plan.length,
  );
  await stage("score", () => score({ phase, rewardConfig: config.reward }, { store }));
  return stage("close", () =>
    close({ phase, policyVersion: policy.version, rewardConfig: config.reward, minimum }, { store }),
  );
}
