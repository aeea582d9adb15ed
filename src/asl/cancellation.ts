// Stops a part of an execution, such as a branch whose sibling failed, or the whole of it. It is cheaper than an
// AbortSignal for each of the ten thousand children of a Distributed Map.

/** Thrown in cancelled branches. Nobody reports it, because the code that cancelled them knows why. */
export class Cancelled extends Error {
  override readonly name = "Cancelled";
}

export class Cancellation {
  readonly #callbacks = new Set<() => void>();
  #isCancelled = false;
  #leaveParent: (() => void) | undefined;

  /** Makes a cancellation that also fires with its parent. `release` it when its work is over. */
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

  /** Calls back once cancelled, at once when it is cancelled already. @returns unsubscribes */
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
}
