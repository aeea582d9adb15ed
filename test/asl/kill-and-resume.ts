// Kills a runner in a process of its own as often as asked, lets the last one finish, and checks what had been done.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

const PROGRAM = join(import.meta.dirname, "journal-program.ts");

/** @param killAfter ended tasks of each life after which it is killed */
export async function killAndResume(folder: string, killAfter: readonly number[]): Promise<void> {
  const log = join(folder, "log");
  const journals = join(folder, "journals");
  writeFileSync(log, "");
  const lines = () => readFileSync(log, "utf8").split("\n");
  const ended = () => lines().filter(line => line.startsWith("end")).length;
  let kills = 0;
  /** Tasks whose states the journal says were left, with how often each had been started by then. */
  const recorded = new Map<string, number>();
  const starts = (name: string) => lines().filter(line => line === `start ${name}`).length;
  for (const tasks of killAfter) {
    const goal = ended() + tasks;
    const child = spawn(process.execPath, [PROGRAM, journals, log, "60"], { stdio: "ignore" });
    const timer = setInterval(() => {
      if (ended() >= goal) child.kill("SIGKILL");
    }, 10);
    await new Promise<void>(resolve => child.on("exit", () => resolve()));
    clearInterval(timer);
    if (child.signalCode === "SIGKILL") kills++;
    for (const name of recordedTasks(join(journals, "main@run.jsonl")))
      if (!recorded.has(name)) recorded.set(name, starts(name));
  }
  expect(kills).toBeGreaterThan(0);
  expect(JSON.parse(await finish(journals, log))).toMatchObject({
    status: "SUCCEEDED",
    output: ["first", ...ITEMS],
  });
  for (const name of ["first", "left", "right", ...ITEMS.flat()]) {
    expect(lines().filter(line => line === `end ${name}`).length).toBeGreaterThanOrEqual(1);
    // Again only for what was under way when the process was killed.
    expect(lines().filter(line => line === `start ${name}`).length).toBeLessThanOrEqual(1 + kills);
  }
  for (const [name, count] of recorded) expect([name, starts(name)]).toEqual([name, count]);
  // Two of the Parallel, or two of the Map, were under way at each kill.
  expect(lines().filter(line => line.startsWith("start")).length).toBeLessThanOrEqual(
    3 + 2 * ITEMS.length + 2 * kills,
  );
}

/** A journal that ends in half a line is as it may be after a kill. */
function recordedTasks(journal: string): string[] {
  return readFileSync(journal, "utf8")
    .split("\n")
    .slice(0, -1)
    .filter(line => line.startsWith('{"kind":"exited"'))
    .flatMap(line => line.match(/\b(first|left|right|work-\d|score-\d)\b/g) ?? []);
}

const ITEMS = [1, 2, 3, 4, 5, 6].map(item => [`work-${item}`, `score-${item}`]);

function finish(journals: string, log: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [PROGRAM, journals, log, "10"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    child.stdout.on("data", chunk => {
      printed += chunk;
    });
    child.on("error", reject);
    child.on("exit", code =>
      code === 0 ? resolve(printed) : reject(new Error(`the program ended with ${code}`)),
    );
  });
}
