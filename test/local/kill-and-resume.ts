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
  for (const tasks of killAfter) {
    const goal = ended() + tasks;
    const child = spawn(process.execPath, [PROGRAM, journals, log, "60"], { stdio: "ignore" });
    const timer = setInterval(() => {
      if (ended() >= goal) child.kill("SIGKILL");
    }, 10);
    await new Promise<void>(resolve => child.on("exit", () => resolve()));
    clearInterval(timer);
    if (child.signalCode === "SIGKILL") kills++;
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
  expect(lines().filter(line => line === "start first")).toHaveLength(1);
  // Two of the Parallel, or two of the Map, were under way at each kill.
  expect(lines().filter(line => line.startsWith("start")).length).toBeLessThanOrEqual(
    3 + 2 * ITEMS.length + 2 * kills,
  );
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
