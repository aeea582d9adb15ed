// A run of one iteration while everything that can fails: services, drivers, sandboxes, the store, the trainer, and the
// runner itself, which is killed and started again.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listJournals, readJournal } from "../../src/asl/journal-file.ts";
import { parseRunConfig } from "../../src/config/parse-config.ts";
import { describeSoftware } from "../../src/run/run-record.ts";
import { startRun } from "../../src/run/start-run.ts";
import { openStore } from "../../src/store/open-store.ts";
import { makeTinyRun } from "../run/tiny-run.ts";
import { StormLog } from "./storm-log.ts";
import type { StormSettings } from "./storm-program.ts";

const PROGRAM = join(import.meta.dirname, "storm-program.ts");
export const RUN = "storm";

export interface StormOptions {
  readonly episodes: number;
  /** Concurrency limit of episodes, and episodes of a shard. */
  readonly concurrency: number;
  /** Shares of the episodes: the storm kills the runner when so many have ended. */
  readonly killAt: readonly number[];
  readonly killInTraining: boolean;
  /** Speed of the state machines' clock beside the real one; it shortens their waits and their time limits. */
  readonly speed: number;
  readonly killSandboxEveryMs: number;
  readonly storeFaultShare: number;
  /** Store of the run; without one, a folder beside the run. */
  readonly storeUrl?: string;
}

export interface Storm {
  readonly storeUrl: string;
  readonly folder: string;
  /** Faults that the storm made itself, by kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Errors that the state machines recorded, by name. */
  readonly recorded: Readonly<Record<string, number>>;
  readonly kills: number;
  readonly seconds: number;
  /** End of the last runner. */
  readonly code: number | null;
  readonly stderr: string;
}

export async function runStorm({
  episodes,
  concurrency,
  killAt,
  killInTraining,
  storeUrl,
  ...faults
}: StormOptions): Promise<Storm> {
  const tiny = await makeTinyRun({
    iterations: 1,
    settings: `rollout:\n  episodes: ${episodes}\n  concurrency: ${concurrency}\n  attempts: 2\n`,
  });
  const url = storeUrl ?? tiny.store;
  const workFolder = join(tiny.folder, "work");
  mkdirSync(workFolder);
  const config = parseRunConfig(readFileSync(tiny.config, "utf8"), tiny.config);
  const software = describeSoftware({});
  await startRun(
    { run: RUN, config, configFile: tiny.config, software, createdAt: new Date() },
    { store: await openStore(url) },
  );
  const log = new StormLog(join(tiny.folder, "storm.log"));
  const settings: StormSettings = {
    ...{ run: RUN, storeUrl: url, folder: join(tiny.folder, "journals"), workFolder },
    ...{ log: join(tiny.folder, "storm.log"), startMs: Date.now(), ...faults },
  };
  const begun = performance.now();
  const reached = [
    ...killAt.map(share => () => log.count("episode") >= share * episodes),
    ...(killInTraining ? [() => log.count("start of training") >= 2] : []),
  ];
  let kills = 0;
  for (const isReached of [...reached, () => false]) {
    const { child, ended } = startRunner(settings);
    while (child.exitCode === null && child.signalCode === null && !isReached())
      await Promise.race([ended, sleep(20)]);
    if (isReached() && child.exitCode === null) {
      child.kill("SIGKILL");
      kills += 1;
      await ended;
      continue;
    }
    const { code, stderr } = await ended;
    const counts = Object.entries(log.counts()).filter(([what]) => what.startsWith("fault: "));
    return {
      ...{ storeUrl: url, folder: tiny.folder, kills, code, stderr },
      faults: Object.fromEntries(counts.map(([what, count]) => [what.slice("fault: ".length), count])),
      recorded: recordedErrors(settings.folder),
      seconds: Math.round((performance.now() - begun) / 1000),
    };
  }
  throw new Error("the last runner is not killed");
}

function startRunner(settings: StormSettings) {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  // A test runner that is killed must not leave it behind.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  child.once("close", () => process.off("exit", kill));
  let stderr = "";
  child.stderr.on("data", text => {
    stderr = `${stderr}${text}`.slice(-20_000);
  });
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, stderr }));
  return { child, ended };
}

/** Errors of tasks in all journals, those of a Distributed Map's children included. */
function recordedErrors(folder: string): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const path of listJournals(folder))
    for (const events of readJournal(path)?.events.values() ?? [])
      for (const event of events) {
        const details = event[`${event.type[0]?.toLowerCase()}${event.type.slice(1)}EventDetails`];
        const { error } = (details ?? {}) as { readonly error?: string };
        if (event.type.startsWith("Task") && error !== undefined) counts[error] = (counts[error] ?? 0) + 1;
      }
  return counts;
}
