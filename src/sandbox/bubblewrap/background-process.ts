// A child process that this one does not stay alive for, unless somebody waits for what it answers: a driver that has
// nothing more to do may end without a word, and the child with it.

interface Handle {
  ref(): void;
  unref(): void;
}

export class BackgroundProcess {
  readonly #handles: () => readonly (Handle | null | undefined)[];
  #awaitedCount = 0;

  /** @param handles all that Node would stay alive for, those that are there */
  constructor(handles: () => readonly (Handle | null | undefined)[]) {
    this.#handles = handles;
    for (const handle of handles()) handle?.unref();
  }

  /** Keeps this process alive meanwhile. */
  async awaited<Result>(work: Promise<Result>): Promise<Result> {
    this.#awaitedCount += 1;
    if (this.#awaitedCount === 1) for (const handle of this.#handles()) handle?.ref();
    try {
      return await work;
    } finally {
      this.#awaitedCount -= 1;
      if (this.#awaitedCount === 0) for (const handle of this.#handles()) handle?.unref();
    }
  }
}
