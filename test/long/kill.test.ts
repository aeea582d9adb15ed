// A runner that is killed at ten random moments, each time resumed: the run completes, nothing is lost or counted
// twice, nothing is left behind on the machine, and every training step repeats to the byte.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deriveSeed } from "../../src/random/seed.ts";
import { RandomStream } from "../../src/random/stream.ts";
import { enginePrefix, policyPrefix } from "../../src/run/keys.ts";
import { liveOwner } from "../../src/run/owner-lease.ts";
import { openStore } from "../../src/store/open-store.ts";
import { checkFinishedRun } from "../run/check-store.ts";
import { makeTinyRun, startT1, type TinyRun, t1 } from "../run/tiny-run.ts";

const KILLS = 10;

describe("a run that is killed again and again", () => {
  let tiny: TinyRun;
  beforeAll(async () => {
    tiny = await makeTinyRun({ tasks: 20, iterations: 12, settings: "rollout:\n  episodes: 16\n" });
  });
  afterAll(() => rmSync(tiny.folder, { recursive: true, force: true }));

  it("completes, keeps what was finished, and leaves nothing behind", async () => {
    const random = new RandomStream(deriveSeed("kill", Date.now()));
    const before = leftovers();
    const moments: number[] = [];
    let begin = ["run", "start", tiny.config, "--name", "killed", "--continue"];
    for (let kill = 0; kill < KILLS; kill++) {
      const child = startT1(...begin, "--local", tiny.store);
      const ended = new Promise(resolve => child.once("exit", resolve));
      // Count from the moment at which it owns the run, because the start of a process takes any time.
      while (!(await owns(tiny.store, child.pid)) && child.exitCode === null)
        await new Promise(resolve => setTimeout(resolve, 20));
      const afterMs = random.integer(4000);
      moments.push(afterMs);
      await new Promise(resolve => setTimeout(resolve, afterMs));
      child.kill("SIGKILL");
      await ended;
      if ((await (await openStore(tiny.store)).head("runs/killed/run.json")) !== undefined)
        begin = ["run", "resume", "killed"];
    }
    const last = await t1(
      "run",
      "start",
      tiny.config,
      "--name",
      "killed",
      "--continue",
      "--local",
      tiny.store,
    );
    expect(last.code, `killed after ${moments.join(", ")} ms: ${last.stderr}`).toBe(0);
    const interrupted = await checkFinishedRun(await openStore(tiny.store), "killed");
    process.stderr.write(
      `killed after ${moments.join(", ")} ms; ${interrupted} interrupted attempts were run again\n`,
    );
    // Processes and files of others come and go; our leftovers would stay.
    const news = () => {
      const after = leftovers();
      return {
        processes: Math.max(0, after.processes - before.processes),
        leases: after.leases.filter(lease => !before.leases.includes(lease)),
        mounts: after.mounts.filter(mount => !before.mounts.includes(mount)),
      };
    };
    await expect.poll(news, { timeout: 60_000, interval: 500 }).toEqual({
      processes: 0,
      leases: [],
      mounts: [],
    });
    // Runners went on in the executions of killed ones; only who was killed before he began one left none.
    const sessions = readdirSync(join(tiny.store, "runs/killed/executions"));
    expect(sessions.length).toBeLessThanOrEqual(KILLS);
  });

  it("gives the same bytes when a training step is repeated from the last whole state", async () => {
    for (const version of [2, 7, 12]) {
      const again = join(tiny.folder, `again-${version}`);
      execFileSync("cp", ["-r", tiny.store, again]);
      const run = join(again, "runs/killed");
      // Leave the state of a runner that died while it trained this version.
      for (const kind of ["policies", "engine"]) {
        for (const name of readdirSync(join(run, kind)))
          if (Number(name) >= version) rmSync(join(run, kind, name), { recursive: true });
      }
      for (const iteration of readdirSync(join(run, "iterations"))) {
        if (Number(iteration) >= version) rmSync(join(run, "iterations", iteration), { recursive: true });
        if (Number(iteration) !== version - 1) continue;
        for (const file of ["metrics.json", "audit.json"]) rmSync(join(run, "iterations", iteration, file));
      }
      const code = `
        import { openStore } from ${JSON.stringify(join(import.meta.dirname, "../../src/store/open-store.ts"))};
        import { train } from ${JSON.stringify(join(import.meta.dirname, "../../src/learning/train.ts"))};
        import { openEngine } from ${JSON.stringify(join(import.meta.dirname, "../../src/training/engines.ts"))};
        await train({ run: "killed", iteration: ${version - 1} }, await openEngine("onnx", { threads: 2 }), { store: await openStore(${JSON.stringify(again)}) });
      `;
      execFileSync(process.execPath, ["--input-type=module", "-e", code]);
      for (const prefix of [policyPrefix("killed", version), enginePrefix("killed", version)]) {
        const manifest = (store: string): string =>
          readFileSync(join(store, prefix, "manifest.json"), "utf8");
        expect(manifest(again), `version ${version}`).toBe(manifest(tiny.store));
      }
      rmSync(again, { recursive: true });
    }
  });
});

async function owns(store: string, pid: number | undefined): Promise<boolean> {
  const owner = await liveOwner(await openStore(store), "killed", Date.now);
  return owner?.process?.pid === pid;
}

/** Sandboxes, mounts and lease files of this user. */
function leftovers(): {
  readonly processes: number;
  readonly mounts: readonly string[];
  readonly leases: readonly string[];
} {
  const processes = readdirSync("/proc").filter(name => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return (
        readFileSync(`/proc/${name}/comm`, "utf8").trim() === "bwrap" &&
        !/State:\s+Z/.test(readFileSync(`/proc/${name}/status`, "utf8"))
      );
    } catch {
      return false;
    }
  });
  const mounts = readFileSync("/proc/mounts", "utf8").split("\n");
  const runFolders = readdirSync("/tmp").filter(name => /^t1-\d+$/.test(name));
  const leases = runFolders.flatMap(folder => listIfThere(join("/tmp", folder, "leases")));
  return { processes: processes.length, mounts, leases };
}

function listIfThere(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
