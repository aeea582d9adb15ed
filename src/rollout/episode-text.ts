// How a policy reads and writes text, and the shape of its routes.
import { chatOptions } from "../agent/find-protocol.ts";
import type { RunConfig } from "../config/run-config.ts";
import type { ChatFormat } from "../model/chat-format.ts";
import { readModelConfig } from "../model/checkpoint.ts";
import { openStoredModel, readTextFormat } from "../model/model-folder.ts";
import { routeLayout } from "../model/routing.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import type { PolicyReference } from "../sampler/sampler.ts";
import type { ObjectStore } from "../store/object-store.ts";
import type { RouteLayout } from "../trajectory/routes.ts";

export interface EpisodeText {
  readonly tokenizer: Tokenizer;
  readonly chat: ChatFormat;
  /** Undefined for a model without experts. */
  readonly layout: RouteLayout | undefined;
}

/** The same for every version of a run's policy: training leaves tokenizer, template and shape as they are. */
export async function openText(
  store: ObjectStore,
  { prefix }: PolicyReference,
  { agent }: Pick<RunConfig, "agent">,
): Promise<EpisodeText> {
  const files = await openStoredModel(store, prefix);
  const layout = routeLayout(await readModelConfig(files));
  return { ...(await readTextFormat(files, chatOptions(agent))), layout };
}
