// Runs the episodes of a phase, many at once, until each has an attempt that counts or failed too often. Safe to run
// again: finished attempts are kept, and what a dead runner left half-done is run anew under the next attempt number.
import { setTimeout as sleep } from "node:timers/promises";
import type { RunConfig } from "../config/run-config.ts";
import type { ProcessIdentity } from "../files/process-identity.ts";
import { claimAttempt, readAdmitted } from "../run/claim.ts";
import { episodePrefix, type PhasePrefix } from "../run/keys.ts";
import type { EpisodeRecord, PlannedEpisode } from "../run/records.ts";
import type { PolicyReference } from "../sampler/sampler.ts";
import type { RouteLayout } from "../trajectory/routes.ts";
import { type AttemptServices, runAttempt } from "./attempt.ts";
import { type Cutoff, EpisodeSlots } from "./episode-slots.ts";
import type { PreparedTask } from "./prepare.ts";
import { readAttempts } from "./score.ts";

export interface RunEpisodesInput {
  readonly phase: PhasePrefix;
  readonly plan: readonly PlannedEpisode[];
  readonly prepared: ReadonlyMap<string, PreparedTask>;
  readonly config: Pick<RunConfig, "agent" | "sampling" | "rollout" | "verifier">;
  readonly policy: PolicyReference;
  /** Undefined for a model without experts. */
  readonly layout: RouteLayout | undefined;
}

export interface RunEpisodesServices extends Omit<AttemptServices, "signal" | "interruption"> {
  /** Ends all episodes, as if those that have not ended had not been begun. */
  readonly interruption?: AbortSignal;
  readonly holder: { readonly name: string; readonly process?: ProcessIdentity };
  readonly onEpisode?: (record: EpisodeRecord) => void;
  /** Where other shards are played on the same machine: places that all of them share. */
  readonly slots?: EpisodeSlots;
  /** Of the whole phase; without it every episode is waited for. */
  readonly cutoff?: Cutoff;
}

/** Pause before a failed attempt is repeated; doubled each time. */
const RETRY_MS = 500;

export async function runEpisodes(input: RunEpisodesInput, services: RunEpisodesServices): Promise<void> {
  const { plan, config } = input;
  const { cutoff, slots = new EpisodeSlots(config.rollout.concurrency) } = services;
  // An error of one episode ends the shard, and so does whoever ends us.
  const broken = new AbortController();
  const interruption = anyOf(broken.signal, services.interruption);
  const signal = anyOf(interruption, cutoff?.signal);
  const play = async (planned: PlannedEpisode): Promise<void> => {
    if (interruption.aborted) return;
    try {
      const record = await settle(input, planned, { ...services, signal, interruption });
      if (record === undefined) return;
      cutoff?.count(record);
      services.onEpisode?.(record);
    } catch (error) {
      broken.abort(error);
    }
  };
  await Promise.all(plan.map(planned => slots.hold(() => play(planned))));
  interruption.throwIfAborted();
}

function anyOf(signal: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other === undefined ? signal : AbortSignal.any([signal, other]);
}

/** Brings one episode to an attempt that counts. @returns undefined when it was brought there earlier */
async function settle(
  input: RunEpisodesInput,
  planned: PlannedEpisode,
  services: RunEpisodesServices & AttemptServices,
): Promise<EpisodeRecord | undefined> {
  const { phase, config, prepared: all } = input;
  const { store, holder } = services;
  const prefix = episodePrefix(phase, planned.episode);
  if ((await readAdmitted(store, prefix)) !== undefined) return undefined;
  const earlier = await readAttempts(store, prefix);
  const finished = earlier.find(record => record.failure === undefined);
  if (finished !== undefined) return finished;
  const prepared = all.get(planned.task);
  if (prepared === undefined) throw new Error(`task ${planned.task} was not prepared`);
  for (let failures = earlier.length; ; failures++) {
    const claim = { holder: holder.name, process: holder.process, claimedAtMs: Date.now() };
    const attempt = await claimAttempt(store, prefix, claim);
    const record = await runAttempt({ ...input, planned, attempt, prepared }, services);
    if (record.failure === undefined || !record.failure.retryable || failures + 1 >= config.rollout.attempts)
      return record;
    await sleep(RETRY_MS * 2 ** failures, undefined, { signal: services.interruption });
  }
}
