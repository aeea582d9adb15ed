// Caches a costly fact about a sandbox's files until something runs inside.

export class CachedUntilExec<Value> {
  #known: Promise<Value> | undefined;
  #isQuiet = false;
  #beginnings = 0;

  /** Files may change from here on. */
  begin(): void {
    this.#beginnings += 1;
    this.#isQuiet = false;
    this.#known = undefined;
  }

  /** @param end ends all that runs; nothing does afterwards, unless something began meanwhile */
  async rest(end: () => Promise<void>): Promise<void> {
    const before = this.#beginnings;
    await end();
    if (this.#beginnings === before) this.#isQuiet = true;
  }

  /** @param find finds it out; what fails is tried again the next time */
  get(find: () => Promise<Value>): Promise<Value> {
    if (this.#known !== undefined) return this.#known;
    const found = find();
    if (!this.#isQuiet) return found;
    this.#known = found;
    found.catch(() => {
      if (this.#known === found) this.#known = undefined;
    });
    return found;
  }
}
