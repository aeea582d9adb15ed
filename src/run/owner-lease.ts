// Which runner may move a run: a lease with an expiry in `owner.json`, moved by compare-and-swap only. A second runner
// is refused; a lease that ran out, or whose process is dead on this machine, is taken over with the next generation.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { Failure, formatErrorText, InputError } from "../failure/errors.ts";
import { ProcessIdentity, processState } from "../files/process-identity.ts";
import { encodeJson, parseJson } from "../store/json.ts";
import type { ObjectStore } from "../store/object-store.ts";
import { ownerKey } from "./keys.ts";

/** `owner.json`. Times are Unix times in ms of the holder's clock. */
export const Owner = z.strictObject({
  /** Tells this acquisition from every other one. */
  id: z.string().min(1),
  /** Number of the acquisition, from 1; what a former owner still does carries a smaller one. */
  generation: z.int().positive(),
  holder: z.string().min(1),
  /** Missing when the run does not end with one process, e.g. for an execution of a state machine. */
  process: ProcessIdentity.optional(),
  acquiredAtMs: z.int(),
  expiresAtMs: z.int(),
  releasedAtMs: z.int().optional(),
});
export type Owner = z.infer<typeof Owner>;

export interface OwnerOptions {
  /** Who a person has to ask: a user and machine, the name of an execution. */
  readonly holder: string;
  /** With it a dead owner is taken over at once on its machine; without it everybody waits for the expiry. */
  readonly process?: ProcessIdentity;
  /** Longer than the pauses between two `renew()` and than the differences of the clocks that share the store. */
  readonly ttlMs: number;
  /** Unix time in ms. */
  readonly clock: () => number;
}

/** Several runners may try at once, and each loser sees another winner; more losses than this are no coincidence. */
const ACQUIRE_TRIES = 10;

/** The second follows an answer that was lost; nobody but the owner itself could make a fourth one necessary. */
const WRITE_TRIES = 3;

/**
 * Becomes the owner of a run until `ttlMs` after the last `renew()`.
 *
 * @throws InputError that names the owner when another live lease exists
 */
export async function acquireOwner(
  store: ObjectStore,
  run: string,
  options: OwnerOptions,
): Promise<OwnerLease> {
  const key = ownerKey(run);
  for (let tries = 0; tries < ACQUIRE_TRIES; tries++) {
    const found = await store.get(key);
    const current = found && parseJson(found.body, key, Owner);
    if (current !== undefined && isLive(current, options.clock())) throw ownedAlready(key, current);
    const owner = newOwner((current?.generation ?? 0) + 1, options);
    const condition = found === undefined ? { ifNoneMatch: "*" as const } : { ifMatch: found.etag };
    const result = await store.put(key, encodeJson(owner), condition);
    if (result.written) return new OwnerLease(store, key, owner, result.etag, options);
  }
  throw new InputError({
    what: "the run changes hands all the time",
    where: key,
    expected: `expected to become the owner within ${ACQUIRE_TRIES} tries`,
    fix: "stop the other runners of this run",
  });
}

/** @returns undefined when no runner is at work on the run */
export async function liveOwner(
  store: ObjectStore,
  run: string,
  clock: () => number,
): Promise<Owner | undefined> {
  const key = ownerKey(run);
  const found = await store.get(key);
  const owner = found && parseJson(found.body, key, Owner);
  return owner !== undefined && isLive(owner, clock()) ? owner : undefined;
}

/** Made by `acquireOwner`. Disposing releases it. */
export class OwnerLease implements AsyncDisposable {
  readonly #store: ObjectStore;
  readonly #key: string;
  readonly #options: OwnerOptions;
  #owner: Owner;
  #etag: string;

  constructor(store: ObjectStore, key: string, owner: Owner, etag: string, options: OwnerOptions) {
    this.#store = store;
    this.#key = key;
    this.#owner = owner;
    this.#etag = etag;
    this.#options = options;
  }

  get owner(): Owner {
    return this.#owner;
  }

  /** Moves the expiry to `ttlMs` from now. @throws Failure OwnerLost when another runner owns the run, or none does */
  async renew(): Promise<void> {
    if (this.#owner.releasedAtMs !== undefined) throw ownerLost(this.#key, this.#owner, this.#owner);
    const { clock, ttlMs } = this.#options;
    const written = await this.#write({ ...this.#owner, expiresAtMs: clock() + ttlMs });
    if (!written.isOurs) throw ownerLost(this.#key, this.#owner, written.other);
  }

  /** Lets others have the run at once. May be called twice, and after the lease was lost. */
  async release(): Promise<void> {
    if (this.#owner.releasedAtMs !== undefined) return;
    await this.#write({ ...this.#owner, releasedAtMs: this.#options.clock() });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  async #write(owner: Owner): Promise<Written> {
    for (let tries = 0; tries < WRITE_TRIES; tries++) {
      const result = await this.#store.put(this.#key, encodeJson(owner), { ifMatch: this.#etag });
      if (result.written) {
        this.#owner = owner;
        this.#etag = result.etag;
        return { isOurs: true };
      }
      const found = await this.#store.get(this.#key);
      const other = found && parseJson(found.body, this.#key, Owner);
      if (found === undefined || other?.id !== owner.id) return { isOurs: false, other };
      // A write of ours whose answer was lost has moved the object on; it is still ours, at another version.
      this.#etag = found.etag;
    }
    return { isOurs: false, other: undefined };
  }
}

type Written = { readonly isOurs: true } | { readonly isOurs: false; readonly other: Owner | undefined };

function newOwner(generation: number, { holder, process, ttlMs, clock }: OwnerOptions): Owner {
  const now = clock();
  return {
    id: randomUUID(),
    generation,
    holder,
    ...(process === undefined ? {} : { process }),
    acquiredAtMs: now,
    expiresAtMs: now + ttlMs,
  };
}

function isLive(owner: Owner, now: number): boolean {
  if (owner.releasedAtMs !== undefined || owner.expiresAtMs <= now) return false;
  // "rebooted" is not enough here: machines that share a bucket may have one name, e.g. Lambda functions.
  return owner.process === undefined || processState(owner.process) !== "dead";
}

function ownedAlready(key: string, owner: Owner): InputError {
  return new InputError({
    what: "the run is owned by another runner",
    where: key,
    expected: `expected a free run, got ${describe(owner)}`,
    fix: "stop that runner, or wait until its lease ends",
  });
}

function ownerLost(key: string, mine: Owner, other: Owner | undefined): Failure {
  const text = formatErrorText({
    what: "the run is no longer ours",
    where: key,
    expected: `expected generation ${mine.generation} of ${mine.holder}, got ${other === undefined ? "no owner" : describe(other)}`,
    fix: "nothing that this runner did is lost; start it again if the other one should not go on",
  });
  return new Failure("OwnerLost", text, { retryable: false });
}

function describe({ holder, process, generation, expiresAtMs, releasedAtMs }: Owner): string {
  const where = process === undefined ? "" : ` (host ${process.host}, process ${process.pid})`;
  const end =
    releasedAtMs === undefined
      ? `until ${new Date(expiresAtMs).toISOString()}`
      : `released at ${new Date(releasedAtMs).toISOString()}`;
  return `generation ${generation} of ${holder}${where}, ${end}`;
}
