// Keeps the records and events of an execution and its children in memory, and in a journal where there is one.
import type { Recorder } from "./execution.ts";
import type { HistoryEvent } from "./history.ts";
import type { JournalFile } from "./journal-file.ts";
import type { ProgressRecord } from "./progress.ts";

export class RunRecorder implements Recorder {
  readonly #events: Map<string, HistoryEvent[]>;
  readonly #journal: JournalFile | undefined;
  readonly #onEvent: (path: string, event: HistoryEvent) => void;

  /** @param events of a journal that is reopened, by path */
  constructor(
    journal: JournalFile | undefined,
    onEvent: (path: string, event: HistoryEvent) => void,
    events: ReadonlyMap<string, HistoryEvent[]> = new Map(),
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
    this.#onEvent(path, event);
  }

  eventsOf(path: string): HistoryEvent[] {
    let events = this.#events.get(path);
    if (events === undefined) {
      events = [];
      this.#events.set(path, events);
    }
    return events;
  }

  /** Closes the journal's file; the next record opens it again. */
  close(): void {
    this.#journal?.close();
  }
}
