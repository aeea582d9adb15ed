import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { currentProcess, formatProcess, parseProcess, processState } from "./process-identity.ts";

/** Start time of another process in clock ticks after boot, as its identity would hold it. */
function startedOf(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

function sleeper() {
  const child = spawn("sleep", ["60"]);
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  if (child.pid === undefined) throw new Error("sleep did not start");
  return { child, identity: { ...currentProcess(), pid: child.pid, started: startedOf(child.pid) } };
}

describe("process identity", () => {
  it("says of this process that it lives", () => {
    expect(processState(currentProcess())).toBe("alive");
    expect(currentProcess().started).toBe(startedOf(process.pid));
  });

  it("says of a child that it lives until it is killed", async () => {
    const { child, identity } = sleeper();
    expect(processState(identity)).toBe("alive");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(processState(identity)).toBe("dead");
  });

  it("takes a killed process for dead before anybody has waited for it", async () => {
    // The shell starts a child and then becomes a program that waits for nobody, so the child stays a zombie.
    const shell = spawn("sh", ["-c", "sleep 0 & echo $!; exec sleep 60"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => {
      shell.kill("SIGKILL");
    });
    const pid = Number(String((await once(shell.stdout, "data"))[0]));
    const identity = { ...currentProcess(), pid, started: startedOf(pid) };
    while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) await new Promise(setImmediate);
    expect(processState(identity)).toBe("dead");
  });

  it("is not fooled by a process id that was given out again", () => {
    expect(processState({ ...currentProcess(), started: "1" })).toBe("dead");
  });

  it("asks by signal where start times are not told", async () => {
    const { child, identity } = sleeper();
    const { started: _, ...unknownStart } = identity;
    expect(processState(unknownStart)).toBe("alive");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(processState(unknownStart)).toBe("dead");
  });

  it("calls nothing dead that it cannot see", () => {
    const here = currentProcess();
    expect(processState({ ...here, pidNamespace: "1", started: "1" })).toBe("elsewhere");
    expect(processState({ ...here, host: "other", boot: "other", started: "1" })).toBe("elsewhere");
    expect(processState({ ...here, boot: "earlier" })).toBe("rebooted");
    // A host that took another name is still the same boot.
    expect(processState({ ...here, host: "renamed" })).toBe("alive");
  });

  it("is the same after it was a file name", () => {
    const word = fc.option(fc.stringMatching(/^[0-9a-f-]{1,36}$/), { nil: undefined });
    const identity = fc.record(
      {
        host: fc.stringMatching(/^[\w.-]{1,64}$/),
        pid: fc.integer({ min: 1, max: 2 ** 22 }),
        boot: word,
        pidNamespace: word,
        started: word,
      },
      { requiredKeys: ["host", "pid"] },
    );
    fc.assert(
      fc.property(identity, value => {
        expect(formatProcess(value)).toMatch(/^[\w.,-]+$/);
        expect(parseProcess(formatProcess(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("is not read from other names", () => {
    for (const text of ["", "a", "a,b,c,d,e", "h,b,n,0,s", "h,b,n,1,s,x", ",b,n,1,s", "h/i,b,n,1,s"])
      expect(parseProcess(text), text).toBeUndefined();
  });
});
