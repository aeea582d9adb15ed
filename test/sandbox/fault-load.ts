// Thousands of commands while things break around them. Each command writes its number into a log of its sandbox, so
// that afterwards one can tell what ran, and how often.
import { expect } from "vitest";
import { Failure } from "../../src/failure/errors.ts";
import { capturedText } from "../../src/sandbox/captured-text.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";

export interface LoadedSandbox {
  readonly sandbox: Pick<Sandbox, "exec">;
  /** What the commands have written, also when the sandbox is gone; nothing where that cannot be known. */
  readonly readLog: () => Promise<string | undefined>;
  /** Called when it was lost, as whoever plays an episode does. */
  readonly end?: () => Promise<void>;
}

export interface FaultLoad {
  readonly commandCount: number;
  readonly sandboxCount: number;
  /** Of one sandbox at a time. */
  readonly concurrency: number;
  /** Makes one; also the next one when a sandbox was lost. May fail by a Failure that is retryable. */
  readonly create: () => Promise<LoadedSandbox>;
  /** One fault, of a kind that chance chooses. Resolves when it is over. */
  readonly fault: (random: () => number) => Promise<void>;
  /** Between two faults, on average. */
  readonly everyMs: number;
  readonly random: () => number;
}

export interface LoadCounts {
  readonly succeeded: number;
  readonly failures: Readonly<Record<string, number>>;
  readonly faults: number;
  readonly sandboxes: number;
}

/**
 * Runs the load, and checks what must hold whatever the faults: every command ends with its own result or a Failure with
 * a name, none runs twice, and one that succeeded has run.
 */
export async function runFaultLoad(load: FaultLoad): Promise<LoadCounts> {
  const { commandCount, sandboxCount, concurrency, create, fault, everyMs, random } = load;
  const made: { readonly log: LoadedSandbox["readLog"]; readonly succeeded: number[] }[] = [];
  const failures: Record<string, number> = {};
  let next = 0;
  let succeeded = 0;
  const isOver = (): boolean => next >= commandCount;

  const count = (error: unknown): void => {
    expect(error).toBeInstanceOf(Failure);
    const { name, retryable } = error as Failure;
    expect(retryable, `${error}`).toBe(true);
    failures[name] = (failures[name] ?? 0) + 1;
  };

  const work = async (): Promise<void> => {
    while (!isOver()) {
      let one: LoadedSandbox;
      try {
        one = await create();
      } catch (error) {
        count(error);
        continue;
      }
      const own = { log: one.readLog, succeeded: [] as number[] };
      made.push(own);
      let isLost = false;
      const stream = async (): Promise<void> => {
        while (!isOver() && !isLost) {
          const number = next++;
          try {
            const { end, stdout, stderr } = await one.sandbox.exec(`echo ${number} >> log; echo ${number}`, {
              timeoutMs: 120_000,
              requestId: `load-${number}`,
            });
            expect([end, capturedText(stdout)], capturedText(stderr)).toEqual([
              { kind: "exited", exitCode: 0 },
              `${number}\n`,
            ]);
            own.succeeded.push(number);
            succeeded++;
          } catch (error) {
            count(error);
            isLost = true;
          }
        }
      };
      await Promise.all(Array.from({ length: concurrency }, stream));
      if (isLost) await one.end?.();
    }
  };

  let faults = 0;
  const disturb = async (): Promise<void> => {
    while (!isOver()) {
      await new Promise(resolve => setTimeout(resolve, 2 * everyMs * random()));
      if (isOver()) return;
      await fault(random);
      faults++;
    }
  };
  await Promise.all([disturb(), ...Array.from({ length: sandboxCount }, work)]);

  for (const { log, succeeded } of made) {
    const text = await log();
    if (text === undefined) continue;
    const ran = text.split("\n").slice(0, -1).map(Number);
    expect(ran.length, "a command ran twice").toBe(new Set(ran).size);
    const seen = new Set(ran);
    expect(
      succeeded.filter(number => !seen.has(number)),
      "succeeded and never ran",
    ).toEqual([]);
  }
  const failed = Object.values(failures).reduce((sum, value) => sum + value, 0);
  expect(succeeded + failed).toBeGreaterThanOrEqual(commandCount);
  return { succeeded, failures, faults, sandboxes: made.length };
}
