// What the way into a sandbox lets through, what it shows inside of this machine, and what becomes of it.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bubblewrapSandboxes,
  entryProcessHere,
  hostSpec,
  run,
  spawnerHere,
} from "../../../test/sandbox/bubblewrap-sandboxes.ts";
import { listProcesses, onlyChild } from "../../../test/sandbox/processes.ts";
import { hasCode } from "../../files/file-errors.ts";
import { capturedText } from "../captured-text.ts";
import { type ProcessId, startTime } from "../processes.ts";
import type { ExecOptions } from "../sandbox.ts";
import type { BubblewrapSandbox } from "./bubblewrap-sandbox.ts";
import { openHost } from "./host.ts";
import { createBubblewrapProvider } from "./provider.ts";
import { terminalWords } from "./spawner.ts";

const SPEC = hostSpec(16 << 20);
const PATIENCE = { timeout: 8_000 };
const EXITED = { kind: "exited", exitCode: 0 };

const { create, lease, endAll } = bubblewrapSandboxes("spawner", SPEC);

async function output(
  sandbox: BubblewrapSandbox,
  command: string,
  options: Partial<ExecOptions> = {},
): Promise<string> {
  const { end, stdout, stderr } = await run(sandbox, command, options);
  expect(end, capturedText(stderr)).toEqual(EXITED);
  return capturedText(stdout);
}

describe("a command", () => {
  test("gets exactly the environment it is given", async () => {
    const sandbox = await create();
    const env = {
      A: "1",
      SPACED: "a  b",
      QUOTED: `'"$HOME\`\\`,
      EMPTY: "",
      LINES_: "x\ny",
      OTHER: "ä🎉\x01",
    };
    const shown = await output(sandbox, "cat /proc/$$/environ", { env, cwd: "/tmp" });
    const base = {
      HOME: "/root",
      LANG: "C.UTF-8",
      PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      PWD: "/tmp",
    };
    const expected = Object.entries({ ...base, ...env }).map(([name, value]) => `${name}=${value}`);
    expect(shown.split("\0").slice(0, -1).sort()).toEqual(expected.sort());
  });

  test("starts with three descriptors, in a session of its own, with no signal ignored or blocked", async () => {
    const sandbox = await create();
    // Of a program that the shell starts: the shell itself blocks signals while it forks.
    const ask =
      "ls /proc/$$/fd; umask; grep -E '^Sig(Pnd|Blk|Ign)|^Shd' /proc/self/status; read -r stat < /proc/$$/stat; echo $$ $stat";
    const lines = (await output(sandbox, ask)).trim().split("\n");
    const none = "0".repeat(16);
    expect(lines.slice(0, 4)).toEqual(["0", "1", "2", "0022"]);
    expect(lines.slice(4, 8)).toEqual(
      ["SigPnd", "ShdPnd", "SigBlk", "SigIgn"].map(name => `${name}:\t${none}`),
    );
    // proc_pid_stat(5): pid, name, state, parent (none: it is outside), process group, session
    expect(lines[8]).toMatch(/^(\d+) \1 \(sh\) \S 0 \1 \1 /);
  });

  test("says what it is told, whatever characters that holds", async () => {
    const sandbox = await create();
    const anything = fc.string({ unit: fc.nat({ max: 0x2fff }).map(code => String.fromCodePoint(code + 1)) });
    const property = fc.asyncProperty(anything, async text => {
      const quoted = text.replaceAll("'", `'\\''`);
      expect(await output(sandbox, `printf %s '${quoted}'`)).toBe(text);
      expect(await output(sandbox, `printf %s "$SAID"`, { env: { SAID: text } })).toBe(text);
    });
    await fc.assert(property, { numRuns: 100, examples: [["-\n\t\x7f\x1b\\0\u0085 $(:)"], [""]] });
  });

  test("may be a mebibyte long, and not a byte longer", async () => {
    const sandbox = await create();
    const start = "printf %s '";
    const text = "é".repeat(((1 << 20) - start.length - 1) >> 1);
    const { end, stdout } = await run(sandbox, `${start}${text}'`, { outputLimitBytes: 2 << 20 });
    expect(end).toEqual(EXITED);
    expect(capturedText(stdout) === text).toBe(true);
    expect((await run(sandbox, `${start}${text}${text}'`)).end).toMatchObject({ exitCode: 126 });
  });

  test("is one of two hundred at once, each with its own input, output and end", async () => {
    const sandbox = await create();
    const numbers = Array.from({ length: 200 }, (_, index) => index);
    const results = await Promise.all(
      numbers.map(number =>
        run(sandbox, `read -r said; echo $said; echo ${number} >&2; exit ${number}`, {
          stdin: Buffer.from(`in ${number}\n`),
        }),
      ),
    );
    expect(
      results.map(({ end, stdout, stderr }) => [end, capturedText(stdout), capturedText(stderr)]),
    ).toEqual(numbers.map(number => [{ kind: "exited", exitCode: number }, `in ${number}\n`, `${number}\n`]));
  });

  test("that prints more than a pipe holds loses nothing of it, in one burst or after a silence", async () => {
    const sandbox = await create();
    const print = "head -c 3000000 /dev/zero | tr '\\0' x";
    const expected = 3_000_000;
    for (const command of [print, `sleep 0.15; ${print}`, `printf y; sleep 0.05; ${print}; printf z`]) {
      const { stdout } = await run(sandbox, command, { outputLimitBytes: 4 << 20 });
      const text = capturedText(stdout);
      expect([text.replace(/[yz]/g, "").length, text.replace(/x+/, "x")]).toEqual([
        expected,
        command.startsWith("printf") ? "yxz" : "x",
      ]);
    }
  });

  test("leaves nothing in the process that starts it", async () => {
    const sandbox = await create();
    const entryProcess = entryProcessHere();
    const before = memoryOf(entryProcess);
    for (let round = 0; round < 40; round++)
      await Promise.all(Array.from({ length: 50 }, () => run(sandbox, "true")));
    expect(memoryOf(entryProcess) - before).toBeLessThan(1 << 20);
  });

  test("that cannot start says why, also while others start", async () => {
    const sandbox = await create();
    const failing = Array.from({ length: 20 }, () => run(sandbox, "true", { cwd: "/nowhere" }));
    const others = Array.from({ length: 20 }, () => run(sandbox, "echo here", { stdin: Buffer.from("") }));
    for (const { end, stderr } of await Promise.all(failing)) {
      expect(end).toEqual({ kind: "exited", exitCode: 126 });
      expect(capturedText(stderr)).toBe("sh: cannot change to /nowhere: No such file or directory\n");
    }
    for (const { stdout } of await Promise.all(others)) expect(capturedText(stdout)).toBe("here\n");
  });

  test("that is stopped, as a program or before, keeps nobody waiting, and ends at its limit", async () => {
    const sandbox = await create();
    const entryProcess = entryProcessHere();
    const stop = "select undef, undef, undef, 0.001 while getppid > 1; kill STOP => -1 while 1";
    const stopper = (await output(sandbox, `perl -e '${stop}' >/dev/null 2>&1 & echo $!`)).trim();
    const ends = async () => {
      const some = Array.from({ length: 10 }, () => run(sandbox, "true", { timeoutMs: 200 }));
      return (await Promise.all(some)).map(({ end }) => end.kind);
    };
    await expect.poll(ends, PATIENCE).toEqual(Array(10).fill("timed-out"));
    await sandbox.killAgents();
    expect(await output(sandbox, `kill -0 ${stopper} 2>/dev/null || echo gone`)).toBe("gone\n");
    expect(startTime(entryProcess)).toBeDefined();
  });

  test("dies before the process that lets it in when memory runs out", async () => {
    const sandbox = await create();
    const entryProcess = entryProcessHere();
    const score = () => readFileSync(`/proc/${entryProcess}/oom_score_adj`, "utf8").trim();
    const sleeping = run(sandbox, "cat /proc/self/oom_score_adj; sleep 0.3; cat /proc/$$/oom_score_adj");
    await expect.poll(score, PATIENCE).toBe("0");
    expect(capturedText((await sleeping).stdout)).toBe("500\n500\n");
    expect(await output(sandbox, "cat /proc/self/oom_score_adj")).toBe("500\n");
  });

  test("is known by its end alone: what a background process prints later is nobody's", async () => {
    const sandbox = await create();
    const { stdout, durationMs } = await run(sandbox, "(sleep 0.3; echo late) & echo early");
    expect(capturedText(stdout)).toBe("early\n");
    expect(durationMs).toBeLessThan(250);
  });
});

/** @returns false when it has ended already */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
    throw error;
  }
}

function immediate(): Promise<false> {
  return new Promise(resolve => setImmediate(() => resolve(false)));
}

/** Resident memory of a process, in bytes (proc_pid_status(5)). */
function memoryOf(pid: number): number {
  return 1024 * Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

const REPOSITORY = join(import.meta.dirname, "../../..");

describe("from inside", () => {
  /** perl, which every Debian has, because a shell is too slow to see what is there for a third of a millisecond. */
  async function watch(sandbox: BubblewrapSandbox, look: string): Promise<readonly string[]> {
    const script = `
      my %seen;
      until (-e '/tmp/stop') {
        opendir my $proc, '/proc';
        for my $pid (grep { /^\\d+$/ && $_ > 1 && $_ != $$ } readdir $proc) { ${look} }
      }
      print map { "$_\\n" } sort keys %seen;`;
    const watching = run(sandbox, "cat > /tmp/watch.pl; exec perl /tmp/watch.pl", {
      stdin: Buffer.from(script),
    });
    for (let round = 0; round < 150; round++) await run(sandbox, "true");
    await run(sandbox, "touch /tmp/stop");
    const { end, stdout, stderr } = await watching;
    expect(end, capturedText(stderr)).toEqual(EXITED);
    return capturedText(stdout).split("\n").slice(0, -1);
  }

  test("a command that is about to start shows nothing of this machine", async () => {
    const sandbox = await create();
    // What is read may be of the command already, whose loader opens libraries. The words by one read: a second one
    // would go on where the first stopped, in those of the next program.
    const seen = await watch(
      sandbox,
      `open my $f, '<', "/proc/$pid/cmdline" or next;
       sysread($f, my $words, 4096) // next;
       $seen{"words " . $words =~ s/\\0/ /gr} = 1;
       for my $file ('environ', 'maps') {
         my $text = do { local $/; open my $f, '<', "/proc/$pid/$file"; <$f> } // next;
         $seen{"$file tells: $text"} = 1 if $text =~ m{perl|LC_ALL|\\Q${REPOSITORY}\\E};
       }
       for my $link ('exe', 'cwd', 'root', map { "fd/$_" } 0 .. 40) {
         my $target = readlink "/proc/$pid/$link" // next;
         $seen{"$link $target"} = 1;
       }`,
    );
    const isOfCommand = (line: string): boolean =>
      /^words (\/bin\/sh -c (true|touch \/tmp\/stop) |touch \/tmp\/stop )?$/.test(line) ||
      /^(exe \/usr\/bin\/(dash|bash|touch)|cwd \/app|root \/|fd\/[0-2] (\/dev\/null|.*\/pipes\/.*)|fd\/3 \/(usr\/lib|etc)\/.*)$/.test(
        line,
      );
    expect(seen.filter(line => !isOfCommand(line)).join("\n")).toBe("words t1 ");
  });

  test("a command that is about to start cannot be traced", async () => {
    const sandbox = await create();
    // ptrace(PTRACE_SEIZE), which has the rules of every other way to trace and does not stop what it takes: 101 on
    // x86-64, 117 on arm64. Whoever traces buries (__WALL, WNOHANG).
    const ptrace = process.arch === "arm64" ? 117 : 101;
    const name = `do { open my $f, '<', "/proc/$pid/comm"; <$f> } // ''`;
    const seen = await watch(
      sandbox,
      `1 while waitpid(-1, 0x40000001) > 0;
       my $before = ${name};
       my $is_held = syscall(${ptrace}, 0x4206, $pid + 0, 0, 0) == 0;
       my $after = ${name};
       $seen{"a command was held"} = 1 if $is_held && $before ne "t1\\n";
       $seen{"tried"} = 1 if $before eq "t1\\n";
       $seen{"held"} = 1 if $is_held && $after eq "t1\\n";`,
    );
    expect(seen).toEqual(["a command was held", "tried"]);
  });

  test("nobody outside can be signalled: not by number, not by group, not all together", async () => {
    const sandbox = await create();
    const entryProcess = entryProcessHere();
    const command =
      "trap '' HUP TERM; for n in $(seq 1 3000); do kill -0 -- $n && echo $n; kill -0 -- -$n && echo -$n; done 2>/dev/null; kill -TERM 0; kill -TERM -1; echo over";
    const reached = (await output(sandbox, command)).trim().split("\n");
    expect(reached.at(-1)).toBe("over");
    // Process 1, which takes no signal, the command and its group; and perhaps the child that counts.
    expect(reached.length).toBeLessThanOrEqual(5);
    expect(startTime(entryProcess)).toBeDefined();
    expect(await output(sandbox, "echo alive")).toBe("alive\n");
  });

  test("a program in a terminal cannot reach the process that started it by signalling its own group", async () => {
    const sandbox = await create();
    await using terminal = await sandbox.terminal({ columns: 80, rows: 24 });
    await terminal.send("trap '' TERM; kill -TERM 0; ps -o pid=,pgid=,sid= -p $$ | tr -s ' ' ':'; echo up\n");
    await expect.poll(() => terminal.screen(), PATIENCE).toContain("up");
    const [, pid, group, session] = /^:?(\d+):(\d+):(\d+)$/m.exec((await terminal.screen()).join("\n")) ?? [];
    expect([group, session]).toEqual([pid, pid]);
  });
});

describe("the processes that enter", () => {
  test("never enter another process that has the number of a first one", async () => {
    await create();
    const entryProcess = entryProcessHere();
    const pid = onlyChild(onlyChild(entryProcess, "--block-fd"));
    const first = { pid, started: startTime(pid) ?? "" };
    const enter = ({ pid, started }: ProcessId) => {
      const shell = { argv: ["/bin/sh", "-c", "echo inside"], env: [], cwd: "/" };
      const [program = "", ...args] = terminalWords(openHost(), { pid, started }, shell, {
        isImage: false,
      });
      const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
      return { status, stdout, stderr };
    };
    expect(enter(first)).toEqual({ status: 0, stdout: "inside\n", stderr: "" });
    const recycled = { ...first, started: `${Number(first.started) - 1}` };
    expect(enter(recycled)).toEqual({ status: 1, stdout: "", stderr: "sh: the sandbox has ended\n" });
    expect(enter({ pid: 2 ** 22, started: "1" })).toMatchObject({ status: 1, stdout: "" });
  });

  test("are lost with their sandboxes, and the next one has others", async () => {
    const [sandbox, other] = [await create(), await create()];
    const mark = `${800_000 + Math.floor(performance.now())}`;
    await run(sandbox, `setsid sleep ${mark} >/dev/null 2>&1 &`);
    const spawner = spawnerHere();
    const left = () =>
      listProcesses().filter(({ parent, words }) => parent === spawner || words.includes(mark)).length;
    const running = run(sandbox, "sleep 30");
    const lost = expect(running).rejects.toMatchObject({ name: "SandboxLost", retryable: true });
    await expect.poll(left, PATIENCE).toBeGreaterThanOrEqual(3);
    process.kill(spawner, "SIGKILL");
    await lost;
    await expect.poll(left, PATIENCE).toBe(0);
    for (const gone of [sandbox, other])
      await expect(run(gone, "true")).rejects.toMatchObject({ name: "SandboxLost" });
    expect(await output(await create(), "echo next")).toBe("next\n");
  });

  test("killed while the very first sandbox starts, are a loss and not a machine that cannot isolate", async () => {
    const outcomes = new Set<string>();
    for (let tries = 0; tries < 40 && !outcomes.has("SandboxLost"); tries++) {
      const known = new Set(listProcesses().map(({ pid }) => pid));
      await using fresh = createBubblewrapProvider();
      const outcome = fresh.create(SPEC, lease()).then(
        () => "started",
        error => (error as Error).name,
      );
      let isOver = false;
      void outcome.then(() => {
        isOver = true;
      });
      while (!isOver) {
        const all = listProcesses();
        const spawners = all.filter(({ pid, parent }) => parent === process.pid && !known.has(pid));
        const entryProcess = all.find(({ parent }) => spawners.some(({ pid }) => pid === parent));
        if (entryProcess !== undefined && killed(entryProcess.pid)) break;
        await new Promise(resolve => setTimeout(resolve, 1));
      }
      outcomes.add(await outcome);
    }
    expect([...outcomes]).toContain("SandboxLost");
    expect([...outcomes]).not.toContain("InputError");
  });

  test("killed at any moment of a start leave nothing", async () => {
    const spawner = spawnerHere();
    const children = () => listProcesses().filter(({ parent }) => parent === spawner);
    for (let tries = 0; tries < 40; tries++) {
      const starting = create().then(
        () => true,
        () => true,
      );
      while (children().length === 0 && !(await Promise.race([starting, immediate()])));
      const killedAt = performance.now() + (tries % 20) / 2;
      while (performance.now() < killedAt);
      for (const { pid } of children()) killed(pid);
      await starting;
      await endAll();
      // A bwrap whose parent is gone is one of them.
      await expect.poll(children, PATIENCE).toEqual([]);
    }
  });

  test("are one for each sandbox: when it is killed, its sandbox is lost and no other", async () => {
    const sandbox = await create();
    const entryProcess = entryProcessHere();
    const mark = `${850_000 + Math.floor(performance.now())}`;
    await run(sandbox, `setsid sleep ${mark} >/dev/null 2>&1 &`);
    const other = await create();
    process.kill(entryProcess, "SIGKILL");
    await expect
      .poll(() => listProcesses().filter(({ words }) => words.includes(mark)).length, PATIENCE)
      .toBe(0);
    await expect(run(sandbox, "true")).rejects.toMatchObject({ name: "SandboxLost" });
    expect(await output(other, "echo alive")).toBe("alive\n");
  });
});
