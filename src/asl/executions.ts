// The executions that a runner holds: those that were started in it, and those whose journals it found.
import { join } from "node:path";
import { InputError } from "../failure/errors.ts";
import { Execution } from "./execution.ts";
import type { HistoryEvent } from "./history.ts";
import { type JournalContents, JournalFile, listJournals } from "./journal-file.ts";
import { parsePayload } from "./json-value.ts";
import { loadDefinition } from "./load-definition.ts";
import type { Machine } from "./machine.ts";
import { applyRecord, emptyProgress, type ThreadProgress } from "./progress.ts";
import { RunRecorder } from "./run-recorder.ts";
import type { World } from "./world.ts";

interface Entry {
  readonly machine: Machine;
  readonly recorder: RunRecorder;
  readonly progress: ThreadProgress;
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
  readonly #world: World;
  readonly #folder: string | undefined;
  readonly #onEvent: ((executionArn: string, event: HistoryEvent) => void) | undefined;
  readonly #entries = new Map<string, Entry>();

  /** @param folder of their journals; none is kept without */
  constructor(
    world: World,
    folder: string | undefined,
    onEvent: ((executionArn: string, event: HistoryEvent) => void) | undefined,
  ) {
    this.#world = world;
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
    const startMs = this.#world.clock.now();
    const journal =
      this.#folder === undefined
        ? undefined
        : JournalFile.create(join(this.#folder, `${machine.name}@${name}.jsonl`), {
            kind: "execution",
            format: 1,
            ...{ arn, machine: machine.name, definition: machine.definition, name, input, startMs },
            ...(startedBy !== undefined && { startedBy }),
          });
    this.#enter(machine, { ...head, startMs }, this.#recorder(arn, journal), emptyProgress(), 0);
  }

  /** Goes on with those whose journals lie in the folder. @throws InputError for a corrupt journal */
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
      this.#enter(machine, head, this.#recorder(head.arn, journal, events), progress, redrivesOf(contents));
    }
  }

  /** One that has ended goes on from the state that failed. */
  redrive(arn: string): void {
    const { machine, execution, progress, recorder, startedBy } = this.get(arn);
    const { source } = execution;
    const record = { kind: "redriven", timeMs: this.#world.clock.now() } as const;
    recorder.record(record);
    applyRecord(progress, record);
    const head = { ...source, input: source.input.text, startedBy };
    this.#enter(machine, head, recorder, progress, source.redriveCount + 1, true);
  }

  forget(arn: string): void {
    this.#entries.delete(arn);
  }

  /** Ends their work, not them. */
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
    return new RunRecorder(journal, {
      ...(events !== undefined && { events }),
      onEvent: (path, event) => {
        if (path === "") this.#onEvent?.(arn, event);
      },
    });
  }

  #enter(
    machine: Machine,
    head: Head,
    recorder: RunRecorder,
    progress: ThreadProgress,
    redriveCount: number,
    isRedriven = false,
  ): void {
    const { arn, name, input, startMs, startedBy } = head;
    const execution = new Execution(
      {
        ...{ arn, name, startMs, progress, redriveCount },
        machineArn: `arn:aws:states:${this.#world.region}:${this.#world.account}:stateMachine:${machine.name}`,
        machineName: machine.name,
        scope: machine,
        timeoutSeconds: machine.timeoutSeconds,
        input: parsePayload(input),
      },
      this.#world,
      recorder,
    );
    if (isRedriven)
      execution.history.add("ExecutionRedriven", execution.history.events.length, { redriveCount });
    const isOver = execution.restoreEnd();
    const whenOver = isOver
      ? Promise.resolve()
      : Promise.resolve()
          .then(() => execution.run())
          .finally(() => recorder.close());
    this.#entries.set(arn, { machine, recorder, progress, startedBy, execution, whenOver });
    if (!isOver) this.#world.track(whenOver);
  }
}

function redrivesOf({ records }: JournalContents): number {
  return records.filter(({ kind }) => kind === "redriven").length;
}
