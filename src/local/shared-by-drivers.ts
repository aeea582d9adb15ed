// What the drivers of one process share: the tasks of a phase, made ready once, how the policy reads text, the places
// for episodes, and the count by which stragglers are cut.
import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";

import { Cutoff, EpisodeSlots } from "../rollout/episode-slots.ts";
import type { EpisodeText } from "../rollout/episode-text.ts";
import { readPlan } from "../rollout/plan.ts";
import { preparePhase, type SharedByShards } from "../rollout/play-shard.ts";
import type { PreparedTask } from "../rollout/prepare.ts";
import { readAttempts } from "../rollout/score.ts";
import type { ImageServices } from "../rollout/task-image.ts";
import { episodePrefix, type PhasePrefix, parsePhase } from "../run/keys.ts";
import type { PlannedEpisode } from "../run/records.ts";
import { readRun } from "../run/run-record.ts";
import type { ObjectStore } from "../store/object-store.ts";

/** An iteration, the next one that is played ahead, and an evaluation. */
const KEPT_PHASES = 3;

export class SharedByDrivers implements SharedByShards {
  readonly slots: EpisodeSlots;
  readonly #store: ObjectStore;
  readonly #images: ImageServices;
  readonly #workFolder: string;
  readonly #plans = new Map<PhasePrefix, Promise<readonly PlannedEpisode[]>>();
  readonly #prepared = new Map<PhasePrefix, Promise<ReadonlyMap<string, PreparedTask>>>();
  readonly #cutoffs = new Map<PhasePrefix, Promise<Cutoff | undefined>>();
  readonly #texts = new Map<string, Promise<EpisodeText>>();

  /** @param options.workFolder where tasks of stored pools are unpacked */
  constructor({
    store,
    images,
    workFolder,
    concurrency,
  }: {
    readonly store: ObjectStore;
    readonly images: ImageServices;
    readonly workFolder: string;
    readonly concurrency: number;
  }) {
    this.#store = store;
    this.#images = images;
    this.#workFolder = workFolder;
    this.slots = new EpisodeSlots(concurrency);
  }

  plan(phase: PhasePrefix): Promise<readonly PlannedEpisode[]> {
    return once(this.#plans, phase, () => readPlan(this.#store, phase));
  }

  prepared(phase: PhasePrefix): Promise<ReadonlyMap<string, PreparedTask>> {
    return once(this.#prepared, phase, async () => {
      const plan = await this.plan(phase);
      const record = await readRun(this.#store, parsePhase(phase).run);
      // A folder of its own for each try: one that failed half-way may have unpacked some tasks.
      const workFolder = await mkdtemp(join(this.#workFolder, "phase-"));
      return preparePhase({ phase, record, plan, workFolder }, { store: this.#store, images: this.#images });
    });
  }

  text(run: string, open: () => Promise<EpisodeText>): Promise<EpisodeText> {
    return once(this.#texts, run, open);
  }

  /** undefined where the run waits for all of them, and in evaluations */
  cutoff(phase: PhasePrefix): Promise<Cutoff | undefined> {
    return once(this.#cutoffs, phase, async () => {
      const of = parsePhase(phase);
      const { config } = await readRun(this.#store, of.run);
      if (of.kind !== "iteration" || config.rollout.stragglers !== "cut") return undefined;
      const cutoff = new Cutoff(config.rollout.episodes);
      for (const { episode } of await this.plan(phase))
        for (const record of await readAttempts(this.#store, episodePrefix(phase, episode)))
          cutoff.count(record);
      return cutoff;
    });
  }
}

/** What fails is tried again by whoever asks next. */
function once<Key, Value>(
  kept: Map<Key, Promise<Value>>,
  key: Key,
  make: () => Promise<Value>,
): Promise<Value> {
  const known = kept.get(key);
  if (known !== undefined) return known;
  const made = make();
  kept.set(key, made);
  made.catch(() => kept.delete(key));
  for (const old of kept.keys()) if (kept.size > KEPT_PHASES) kept.delete(old);
  return made;
}
