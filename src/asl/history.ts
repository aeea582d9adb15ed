// The history of an execution in the shape of GetExecutionHistory, with its limit: event 25,000 is the failure itself
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
  /** `taskFailedEventDetails` and its like; see `detailsKey`. */
  readonly [details: string]: unknown;
}

/** Thrown when the next event would be the last one that fits: nothing catches it but the execution itself. */
export class HistoryFull extends Error {
  override readonly name = "HistoryFull";
}

const keys = new Map<string, string>();

/** Under which key the details of an event stand: all `…StateEntered` share one, all `…StateExited` another. */
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
      /** The list to go on with; events are added to it. */
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

  /** The event that ends the execution; there is always a place for it. */
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
