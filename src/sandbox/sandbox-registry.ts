// Registry of the sandboxes that a provider has created or adopted, by lease and generation.
import { InvariantError } from "../failure/errors.ts";
import type { Lease, Sandbox } from "./sandbox.ts";

interface Endable extends Sandbox {
  /** @param reason what later users of it are told */
  end(reason: string): Promise<void>;
}

export class SandboxRegistry<Made extends Endable> {
  readonly #made = new Map<string, Promise<Made>>();
  #isClosed = false;

  get(lease: Lease): Promise<Made> | undefined {
    return this.#made.get(keyOf(lease));
  }

  /**
   * The same lease and generation twice is the same sandbox. One that cannot be made is forgotten.
   *
   * @throws InvariantError after `endAll`
   */
  once(lease: Lease, make: () => Promise<Made>): Promise<Made> {
    if (this.#isClosed) throw new InvariantError("the provider is disposed of", { lease: lease.id });
    const existing = this.get(lease);
    if (existing !== undefined) return existing;
    const made = make();
    this.#made.set(keyOf(lease), made);
    made.catch(() => this.forget(lease));
    return made;
  }

  /** It has ended. */
  forget(lease: Lease): void {
    this.#made.delete(keyOf(lease));
  }

  /** Ends those whose deadline has passed. @returns ids of their leases */
  async endLate(nowMs: number): Promise<string[]> {
    const made = await Promise.all([...this.#made.values()].map(one => one.catch(() => undefined)));
    const late = made.filter(one => one !== undefined && one.lease.deadlineMs <= nowMs) as Made[];
    await Promise.all(late.map(one => one.end("its deadline passed")));
    return late.map(({ lease }) => lease.id);
  }

  /** Ends all, and lets none be made any more. @throws the first error, when all have been tried */
  async endAll(): Promise<void> {
    this.#isClosed = true;
    const ends = await Promise.allSettled(
      [...this.#made.values()].map(one =>
        one.then(
          made => made[Symbol.asyncDispose](),
          () => undefined,
        ),
      ),
    );
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  }
}

function keyOf({ id, generation }: Lease): string {
  return JSON.stringify([id, generation]);
}
