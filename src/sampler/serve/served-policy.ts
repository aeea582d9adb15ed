// Which weights are served. While they change, new requests wait; those under way end with the weights they began
// with, since the sampler changes only between answers.
import { InputError } from "../../failure/errors.ts";
import { readModelConfig } from "../../model/checkpoint.ts";
import type { ModelConfig } from "../../model/config.ts";
import { openStoredModel } from "../../model/model-folder.ts";
import type { ObjectStore } from "../../store/object-store.ts";
import type { PolicyReference, Sampler } from "../sampler.ts";

export interface ServedWeights {
  readonly policy: PolicyReference;
  readonly config: ModelConfig;
}

export class ServedPolicy {
  readonly #store: ObjectStore;
  readonly #sampler: Sampler;
  #current: ServedWeights | undefined;
  /** Changes follow each other; it never rejects. */
  #changed: Promise<void> = Promise.resolve();

  constructor(store: ObjectStore, sampler: Sampler) {
    this.#store = store;
    this.#sampler = sampler;
  }

  /** Once no change is under way. @returns undefined when there are no weights yet */
  async settled(): Promise<ServedWeights | undefined> {
    let seen: Promise<void> | undefined;
    while (seen !== this.#changed) {
      seen = this.#changed;
      await seen;
    }
    return this.#current;
  }

  /**
   * Serves a policy from the store as soon as it has answered once; nothing to do when it is served already.
   *
   * @throws InputError when there is no such policy; the one before stays
   * @throws Failure when it cannot be loaded; the one before stays
   */
  use(policy: PolicyReference): Promise<ServedWeights> {
    const changing = this.#changed.then(() => this.#change(policy));
    this.#changed = changing.then(
      () => {},
      () => {},
    );
    return changing;
  }

  async #change(policy: PolicyReference): Promise<ServedWeights> {
    const served = this.#current?.policy;
    if (this.#current !== undefined && served?.prefix === policy.prefix && served.version === policy.version)
      return this.#current;
    if (served?.prefix === policy.prefix)
      throw new InputError({
        what: "one policy with two versions",
        where: policy.prefix,
        expected: `expected version ${served.version}, which it has here, got ${policy.version}`,
      });
    const config = await readModelConfig(await openStoredModel(this.#store, policy.prefix));
    // Proves that the weights load and answer, before any driver waits for them.
    await this.#sampler.generate({
      tokens: Int32Array.of(0),
      routesHeld: 0,
      sampling: { temperature: 0, topP: 1, topK: 0 },
      stop: [],
      maxNewTokens: 1,
      seed: "0".repeat(32),
      policy,
    });
    this.#current = { policy, config };
    return this.#current;
  }
}
