// Lets a run pause between two tasks: those at work end and are recorded, no new one begins, and closing the runner then
// leaves executions that go on from there.

/** Between the end of a task and the next one a machine works out expressions and writes records. */
const SETTLE_MS = 300;

export class TaskGate {
  readonly #mayGoOn: () => Promise<string | undefined>;
  readonly #paused = Promise.withResolvers<string>();
  #atWork = 0;
  #reason: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param mayGoOn asked before every task: why the run pauses, or undefined. What it throws ends the execution's work */
  constructor(mayGoOn: () => Promise<string | undefined>) {
    this.#mayGoOn = mayGoOn;
  }

  /** Resolves with the reason when a task waits at the gate and none is at work. */
  get paused(): Promise<string> {
    return this.#paused.promise;
  }

  /** Runs the task, unless the run pauses: then it waits until the signal fires, and rejects. */
  async pass<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    this.#reason ??= await this.#mayGoOn();
    if (this.#reason !== undefined) {
      this.#pauseWhenQuiet();
      await new Promise<never>((_, reject) => {
        const leave = () => reject(new Error("paused"));
        if (signal.aborted) leave();
        else signal.addEventListener("abort", leave, { once: true });
      });
    }
    this.#atWork++;
    clearTimeout(this.#timer);
    try {
      return await task();
    } finally {
      this.#atWork--;
      if (this.#reason !== undefined) this.#pauseWhenQuiet();
    }
  }

  #pauseWhenQuiet(): void {
    const reason = this.#reason;
    if (this.#atWork > 0 || reason === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#atWork === 0) this.#paused.resolve(reason);
    }, SETTLE_MS);
  }
}
