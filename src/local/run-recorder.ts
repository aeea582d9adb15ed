// Keeps what an execution and its children record: in memory, and in a journal where there is one.
import type { Recorder } from "./execution.ts";
import type { HistoryEvent } from "./history.ts";
import type { JournalFile } from "./journal-file.ts";
import type { ProgressRecord } from "./progress.ts";

export class RunRecorder implements Recorder {
  readonly #events: Map<string, HistoryEvent[]>;
  readonly #journal: JournalFile | undefined;

  constructor(journal: JournalFile | undefined, events: ReadonlyMap<string, HistoryEvent[]> = new Map()) {
    this.#journal = journal;
    this.#events = new Map(events);
  }

  record(record: ProgressRecord): void {
    this.#journal?.record(record);
  }

  event(path: string, event: HistoryEvent): void {
    this.#journal?.event(path, event);
  }

  eventsOf(path: string): HistoryEvent[] {
    let events = this.#events.get(path);
    if (events === undefined) {
      events = [];
      this.#events.set(path, events);
    }
    return events;
  }

  close(): void {
    this.#journal?.close();
  }
}
