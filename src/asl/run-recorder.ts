// Keeps what an execution and its children record: in memory, and in a journal where there is one.
import type { Recorder } from "./execution.ts";
import type { HistoryEvent } from "./history.ts";
import type { JournalFile } from "./journal-file.ts";
import type { ProgressRecord } from "./progress.ts";

export class RunRecorder implements Recorder {
  readonly #events: Map<string, HistoryEvent[]>;
  readonly #journal: JournalFile | undefined;

  readonly #onEvent: ((path: string, event: HistoryEvent) => void) | undefined;

  constructor(
    journal: JournalFile | undefined,
    {
      events = new Map(),
      onEvent,
    }: {
      readonly events?: ReadonlyMap<string, HistoryEvent[]>;
      readonly onEvent?: (path: string, event: HistoryEvent) => void;
    },
  ) {
    this.#journal = journal;
    this.#events = new Map(events);
    this.#onEvent = onEvent;
  }

  record(record: ProgressRecord): void {
    this.#journal?.record(record);
  }

  event(path: string, event: HistoryEvent): void {
    this.#journal?.event(path, event);
    this.#onEvent?.(path, event);
  }

  eventsOf(path: string): HistoryEvent[] {
    let events = this.#events.get(path);
    if (events === undefined) {
      events = [];
      this.#events.set(path, events);
    }
    return events;
  }

  /** Nothing is written for now; the next record opens the journal again. */
  close(): void {
    this.#journal?.close();
  }
}
