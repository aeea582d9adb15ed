// Stops a part of an execution: a branch whose sibling failed, or the whole of it. Cheaper than an AbortSignal per
// child, of which a Distributed Map has ten thousand.

/** Thrown in threads that were cancelled. Whoever cancelled them knows why; nobody reports it. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

export class Cancellation {
  readonly #callbacks = new Set<() => void>();
  #isCancelled = false;
  #leaveParent: (() => void) | undefined;

  /** Cancelled with its parent, and on its own. `release` it when its work is over. */
  static below(parent: Cancellation): Cancellation {
    const child = new Cancellation();
    child.#leaveParent = parent.onCancel(() => child.cancel());
    return child;
  }

  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.release();
    for (const callback of [...this.#callbacks]) callback();
    this.#callbacks.clear();
  }

  release(): void {
    this.#leaveParent?.();
    this.#leaveParent = undefined;
  }

  /** Calls at once when it is cancelled already. @returns ends the interest */
  onCancel(callback: () => void): () => void {
    if (this.#isCancelled) {
      callback();
      return () => {};
    }
    this.#callbacks.add(callback);
    return () => this.#callbacks.delete(callback);
  }

  /** @throws Cancelled */
  check(): void {
    if (this.#isCancelled) throw new Cancelled("cancelled");
  }

  /** The value of the promise, or Cancelled as soon as this is cancelled. */
  async race<T>(promise: Promise<T>): Promise<T> {
    let leave = () => {};
    try {
      return await Promise.race([
        promise,
        new Promise<never>((_, reject) => {
          leave = this.onCancel(() => reject(new Cancelled("cancelled")));
        }),
      ]);
    } finally {
      leave();
    }
  }
}
