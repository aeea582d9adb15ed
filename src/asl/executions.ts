// The executions of a runner: those started in it, and those whose journals it found.
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import { Execution } from "./execution.ts";
import type { HistoryEvent } from "./history.ts";
import { JournalFile, listJournals } from "./journal-file.ts";
import { parsePayload } from "./json-value.ts";
import { loadDefinition } from "./load-definition.ts";
import type { Machine } from "./machine.ts";
import { applyRecord, type BranchProgress, emptyProgress } from "./progress.ts";
import { RunRecorder } from "./run-recorder.ts";
import type { RuntimeContext } from "./runtime-context.ts";

interface Entry {
  readonly recorder: RunRecorder;
  readonly startedBy: string | undefined;
  readonly execution: Execution;
  /** Settles when the execution has ended or the runner has closed. */
  readonly whenOver: Promise<void>;
}

interface Head {
  readonly arn: string;
  readonly name: string;
  readonly input: string;
  readonly startMs: number;
  readonly startedBy?: string | undefined;
}

export class Executions {
  readonly #runtime: RuntimeContext;
  readonly #folder: string | undefined;
  readonly #onEvent: ((executionArn: string, event: HistoryEvent) => void) | undefined;
  readonly #entries = new Map<string, Entry>();

  /** @param folder of their journals; without it none is kept */
  constructor(
    runtime: RuntimeContext,
    folder: string | undefined,
    onEvent: ((executionArn: string, event: HistoryEvent) => void) | undefined,
  ) {
    this.#runtime = runtime;
    this.#folder = folder;
    this.#onEvent = onEvent;
  }

  find(arn: string): Entry | undefined {
    return this.#entries.get(arn);
  }

  /** @throws InputError when there is no such execution */
  get(arn: string): Entry {
    const entry = this.#entries.get(arn);
    if (entry === undefined) throw new InputError({ what: "no such execution", where: arn });
    return entry;
  }

  arns(): readonly string[] {
    return [...this.#entries.keys()];
  }

  /** @param head with an ARN that is free */
  start(machine: Machine, head: Omit<Head, "startMs">): void {
    const { arn, name, input, startedBy } = head;
    const startMs = this.#runtime.clock.now();
    const journal =
      this.#folder === undefined
        ? undefined
        : JournalFile.create(join(this.#folder, `${machine.name}@${name}.jsonl`), {
            kind: "execution",
            format: 1,
            ...{ arn, machine: machine.name, definition: machine.definition, name, input, startMs },
            startedBy,
          });
    this.#enter(machine, { ...head, startMs }, this.#recorder(arn, journal), emptyProgress());
  }

  /** Goes on with the executions whose journals lie in the folder. @throws InputError for a corrupt journal */
  reopen(): void {
    if (this.#folder === undefined) return;
    for (const path of listJournals(this.#folder)) {
      const reopened = JournalFile.reopen(path);
      if (reopened === undefined) continue;
      const { journal, contents } = reopened;
      const { head, events } = contents;
      const progress = emptyProgress();
      for (const record of contents.records) applyRecord(progress, record);
      const machine = loadDefinition(head.machine, head.definition);
      this.#enter(machine, head, this.#recorder(head.arn, journal, events), progress);
    }
  }

  forget(arn: string): void {
    this.#entries.delete(arn);
  }

  /** Ends the work of every execution. None of them ends by it: each goes on when its journal is opened again. */
  cancel(): void {
    for (const { execution } of this.#entries.values()) execution.cancellation.cancel();
  }

  closeJournals(): void {
    for (const { recorder } of this.#entries.values()) recorder.close();
  }

  #recorder(
    arn: string,
    journal: JournalFile | undefined,
    events?: ReadonlyMap<string, HistoryEvent[]>,
  ): RunRecorder {
    const onEvent = (path: string, event: HistoryEvent) => {
      if (path === "") this.#onEvent?.(arn, event);
    };
    return new RunRecorder(journal, onEvent, events);
  }

  #enter(machine: Machine, head: Head, recorder: RunRecorder, progress: BranchProgress): void {
    const { arn, name, input, startMs, startedBy } = head;
    const execution = new Execution(
      {
        ...{ arn, name, startMs, progress },
        machineArn: `arn:aws:states:${this.#runtime.region}:${this.#runtime.account}:stateMachine:${machine.name}`,
        machineName: machine.name,
        scope: machine,
        timeoutSeconds: machine.timeoutSeconds,
        input: parsePayload(input),
      },
      this.#runtime,
      recorder,
    );
    const isOver = execution.restoreEnd();
    const whenOver = isOver
      ? Promise.resolve()
      : Promise.resolve()
          .then(() => execution.run())
          .finally(() => recorder.close());
    this.#entries.set(arn, { recorder, startedBy, execution, whenOver });
    if (!isOver) this.#runtime.track(whenOver);
  }
}
