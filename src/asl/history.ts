// The history of an execution in the shape of GetExecutionHistory, with its limit: the failure itself is event 25,000
// (measured: floci-io/floci#2734).
import type { Clock } from "./clock.ts";

/** Quota of a Standard execution. */
export const MOST_EVENTS = 25_000;

export interface HistoryEvent {
  readonly id: number;
  readonly previousEventId: number;
  /** ISO 8601 */
  readonly timestamp: string;
  readonly type: string;
  /** Details under a key per type, such as `taskFailedEventDetails`; see `detailsKey`. */
  readonly [details: string]: unknown;
}

/** Thrown when the next event would be the last one that fits. Only the execution itself catches it. */
export class HistoryFull extends Error {
  override readonly name = "HistoryFull";
}

const keys = new Map<string, string>();

/** The key of an event's details: all `…StateEntered` share one, all `…StateExited` another. */
function detailsKey(type: string): string {
  let key = keys.get(type);
  if (key === undefined) {
    const short = /StateEntered$/.test(type)
      ? "stateEntered"
      : /StateExited$/.test(type)
        ? "stateExited"
        : type;
    key = `${short[0].toLowerCase()}${short.slice(1)}EventDetails`;
    keys.set(type, key);
  }
  return key;
}

export class History {
  readonly #events: HistoryEvent[];
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #onEvent: (event: HistoryEvent) => void;

  constructor(
    clock: Clock,
    {
      limit,
      events,
      onEvent,
    }: {
      readonly limit: number;
      /** The events so far; new ones are appended to this list. */
      readonly events: HistoryEvent[];
      readonly onEvent: (event: HistoryEvent) => void;
    },
  ) {
    this.#clock = clock;
    this.#limit = limit;
    this.#events = events;
    this.#onEvent = onEvent;
  }

  get events(): readonly HistoryEvent[] {
    return this.#events;
  }

  /** @returns the event's id. @throws HistoryFull when only the last place is left */
  add(type: string, previousEventId: number, details?: object): number {
    if (this.#events.length + 1 >= this.#limit) throw new HistoryFull("the history is full");
    return this.#push(type, previousEventId, details);
  }

  /** Adds the event that ends the execution; there is always a place for it. */
  end(type: string, previousEventId: number, details?: object): number {
    return this.#push(type, previousEventId, details);
  }

  #push(type: string, previousEventId: number, details: object | undefined): number {
    const id = this.#events.length + 1;
    const event: HistoryEvent = {
      id,
      previousEventId,
      timestamp: new Date(this.#clock.now()).toISOString(),
      type,
      ...(details !== undefined && { [detailsKey(type)]: details }),
    };
    this.#events.push(event);
    this.#onEvent(event);
    return id;
  }
}
