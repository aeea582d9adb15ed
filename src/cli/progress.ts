// Progress of long work on stderr: one line that is rewritten on a terminal, a plain line now and then elsewhere.
export interface ProgressOptions {
  readonly stream: NodeJS.WriteStream;
  readonly now?: () => number;
}

/** Plain lines come at most this often. */
const PLAIN_EVERY_MS = 15_000;
const REWRITE_EVERY_MS = 100;

export class Progress {
  readonly #stream: NodeJS.WriteStream;
  readonly #now: () => number;
  readonly #onTerminal: boolean;
  #label = "";
  #total: number | undefined;
  #done = 0;
  #begunAt = 0;
  #shownAt = 0;

  constructor({ stream, now = performance.now.bind(performance) }: ProgressOptions) {
    this.#stream = stream;
    this.#now = now;
    this.#onTerminal = stream.isTTY === true;
  }

  /** Begins a piece of work; `total` is how much there is of it. */
  begin(label: string, total?: number): void {
    this.#label = label;
    this.#total = total;
    this.#done = 0;
    this.#begunAt = this.#now();
    this.#shownAt = this.#onTerminal ? Number.NEGATIVE_INFINITY : this.#begunAt;
    this.#show();
  }

  advance(to: number, total = this.#total): void {
    this.#done = to;
    this.#total = total;
    this.#show();
  }

  /** Shows the time that has passed, where nothing else changes. */
  tick(): void {
    this.#show();
  }

  /** A line that stays, above the progress line. */
  line(text: string): void {
    this.clear();
    this.#stream.write(`${text}\n`);
    this.#shownAt = this.#onTerminal ? Number.NEGATIVE_INFINITY : this.#now();
  }

  clear(): void {
    if (this.#onTerminal) this.#stream.write("\r\x1b[K");
  }

  #show(): void {
    const now = this.#now();
    if (now - this.#shownAt < (this.#onTerminal ? REWRITE_EVERY_MS : PLAIN_EVERY_MS)) return;
    this.#shownAt = now;
    const text = this.#describe(now);
    if (this.#onTerminal) this.#stream.write(`\r\x1b[K${text.slice(0, (this.#stream.columns ?? 80) - 1)}`);
    else this.#stream.write(`${text}\n`);
  }

  #describe(now: number): string {
    const seconds = (now - this.#begunAt) / 1000;
    if (this.#total === undefined) return `${this.#label}  ${formatSeconds(seconds)}`;
    const parts = [this.#label, `${this.#done}/${this.#total}`];
    if (this.#done > 0 && seconds > 0.5) {
      const rate = this.#done / seconds;
      parts.push(
        rate >= 1 ? `${rate.toFixed(1)}/s` : `${(60 * rate).toFixed(1)}/min`,
        `${formatSeconds((this.#total - this.#done) / rate)} left`,
      );
    }
    return parts.join("  ");
  }
}

/** "0:07", "12:40", "3:05:00" */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (value: number): string => `${value}`.padStart(2, "0");
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}
