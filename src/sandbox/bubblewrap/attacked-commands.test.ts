// Commands whose start or end somebody inside meddles with: in between they are children of the entry process, which outside
// nobody may reach, keep waiting, or outlive.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  bubblewrapSandboxes,
  entryProcessHere,
  hostSpec,
  run,
  spawnerHere,
} from "../../../test/sandbox/bubblewrap-sandboxes.ts";
import { listProcesses, SPAWNER } from "../../../test/sandbox/processes.ts";
import { capturedText } from "../captured-text.ts";
import { startTime } from "../processes.ts";
import type { BubblewrapSandbox } from "./bubblewrap-sandbox.ts";

const PATIENCE = { timeout: 8_000 };
/** A word of a command line that no other process of this machine has. */
const OVER = "attack-on-commands-is-over";
// arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h
const [PTRACE, PRLIMIT] = process.arch === "arm64" ? [117, 261] : [101, 302];

const sandboxes = bubblewrapSandboxes("attacked", hostSpec(4 << 20));

async function create(): Promise<{ readonly sandbox: BubblewrapSandbox; readonly entryProcess: number }> {
  const sandbox = await sandboxes.create();
  return { sandbox, entryProcess: entryProcessHere() };
}

/** Starts a perl program in the background that goes on when its command has ended. */
async function attack(sandbox: BubblewrapSandbox, script: string): Promise<void> {
  const stdin = Buffer.from(`select undef, undef, undef, 0.001 while getppid > 1; ${script}`);
  await run(sandbox, "cat > /tmp/attack.pl; setsid perl /tmp/attack.pl > /tmp/said 2>&1 &", { stdin });
}

/** In perl: $pid is each process but process 1 and this. */
const forEach = (body: string): string =>
  `opendir my $proc, '/proc'; for my $pid (grep { /^\\d+$/ && $_ > 1 && $_ != $$ } readdir $proc) { ${body} } closedir $proc;`;

const TRACE_ALL = `my %seen; while (1) { ${forEach(`$seen{$pid} ||= syscall(${PTRACE}, 0x4206, $pid + 0, 0, 0) == 0;`)} }`;

describe("a command that somebody inside traces and never lets go", () => {
  test("ends at its limit", async () => {
    const { sandbox, entryProcess } = await create();
    await attack(sandbox, TRACE_ALL);
    const kinds = async () => (await run(sandbox, "sleep 0.01; true", { timeoutMs: 100 })).end.kind;
    await expect.poll(kinds, PATIENCE).toBe("timed-out");
    expect((await run(sandbox, "echo free", { timeoutMs: 5_000 })).end).toEqual({
      kind: "exited",
      exitCode: 0,
    });
    expect(startTime(entryProcess)).toBeDefined();
  });

  test("in a terminal goes with the terminal", async () => {
    const { sandbox } = await create();
    const terminal = await sandbox.terminal({ columns: 80, rows: 24 });
    await terminal.send("echo up\n");
    await expect.poll(() => terminal.screen(), PATIENCE).toContain("up");
    await attack(
      sandbox,
      `${TRACE_ALL.replace("while (1)", "for (1 .. 9)")} print 'traced'; $| = 1; print "\\n"; sleep 60`,
    );
    // Not by a command, which would be traced too.
    await new Promise(resolve => setTimeout(resolve, 300));
    const startedAt = performance.now();
    await terminal[Symbol.asyncDispose]();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

test("a command that has made its entry process trace it has not ended when it stops", async () => {
  const { sandbox, entryProcess } = await create();
  const stop = `exec perl -e 'print syscall(${PTRACE}, 0, 0, 0, 0); $| = 1; print "\\n"; kill STOP => $$'`;
  const { end, stdout } = await run(sandbox, stop, { timeoutMs: 300 });
  expect([end.kind, capturedText(stdout)]).toEqual(["timed-out", "0\n"]);
  expect(startTime(entryProcess)).toBeDefined();
});

test("commands whose limits somebody inside takes away fail by themselves, and get nothing of ours", async () => {
  const { sandbox } = await create();
  // RLIMIT_NOFILE is 7; numbers go up one by one.
  await attack(
    sandbox,
    `my ($none, $last) = (pack('QQ', 0, 0), $$);
     while (1) { for my $next (1 .. 64) { if (syscall(${PRLIMIT}, $last + $next, 7, $none, 0) == 0) { $last += $next; last } } }`,
  );
  const ends = new Set<string>();
  const refused = '{"kind":"exited","exitCode":126}';
  for (let round = 0; round < 60 || (round < 600 && !ends.has(refused)); round++) {
    const { end, stdout } = await run(sandbox, "readlink /proc/self/fd/1");
    ends.add(JSON.stringify(end));
    expect(capturedText(stdout)).not.toContain("socket");
  }
  expect([...ends]).toContain(refused);
});

describe("commands that are stopped before they execute", () => {
  /** In perl: stops all until @held are five such. A pause, since a signal takes a moment. */
  const HOLD = `
    my @held;
    until (@held >= 5) {
      kill STOP => -1 for 1 .. 500;
      select undef, undef, undef, 0.01;
      @held = ();
      ${forEach(`open my $f, '<', "/proc/$pid/stat" or next; push @held, $pid if <$f> =~ /\\(t1\\) T/;`)}
    }`;

  /** Starts commands, of which some are held. */
  async function runUntil(sandbox: BubblewrapSandbox, isDone: () => boolean): Promise<readonly unknown[]> {
    const running: Promise<unknown>[] = [];
    while (!isDone() && running.length < 500) {
      running.push(run(sandbox, "true").catch(error => error));
      await new Promise(resolve => setTimeout(resolve, 5));
    }
    return running;
  }

  test.each(["entry process", "spawner"])("end with their sandbox when the %s is killed", async victim => {
    const { sandbox, entryProcess } = await create();
    const spawner = spawnerHere();
    await attack(sandbox, `${HOLD} sleep 60`);
    const held = () =>
      listProcesses().filter(({ parent, words }) => parent === entryProcess && words[0] === SPAWNER);
    const running = await runUntil(sandbox, () => held().length >= 5);
    const inside = [...held(), ...listProcesses().filter(({ words }) => words.includes("/tmp/attack.pl"))];
    expect(inside.length).toBeGreaterThanOrEqual(2);
    const left = () => inside.filter(({ pid }) => startTime(pid) !== undefined);
    process.kill(victim === "entry process" ? entryProcess : spawner, "SIGKILL");
    await Promise.all(running);
    await expect.poll(left, PATIENCE).toEqual([]);
  });

  /** In perl, for x86-64: what is asked of a process. The kernel says first whether it may be done at all. */
  const ASK = `
    my ($bytes, $argument) = ("x" x 8, "\\0" x 64);
    my $vector = pack 'QQ', unpack('Q', pack 'P', $bytes), 8;
    my ($none, $one, $idle) = (pack('QQ', 0, 0), pack('Q', 1), pack('L', 0));
    sub ask {
      my ($whose, $pid) = @_;
      my $pidfd = syscall 434, $pid, 0;
      my $tell = sub { print "$_[0] $whose\\n" if $_[1] >= 0 || ($! != 1 && $! != 13) };
      $tell->(seize => syscall 101, 0x4206, $pid, 0, 0);
      $tell->(read => syscall 310, $pid, $vector, 1, $vector, 1, 0);
      $tell->(write => syscall 311, $pid, $vector, 1, $vector, 1, 0);
      $tell->(descriptor => syscall 438, $pidfd, 1, 0);
      $tell->(compare => syscall 312, $pid, $$, 0, 1, 1);
      $tell->(pages => syscall 279, $pid, 0, 0, 0, 0, 0);
      $tell->(futexes => syscall 274, $pid, $argument, $argument);
      $tell->("read $_", open(my $f, '<', "/proc/$pid/$_") ? 0 : -1) for qw(maps environ auxv fd/1);
      $tell->("write $_", open(my $f, '+<', "/proc/$pid/$_") ? 0 : -1) for qw(mem oom_score_adj coredump_filter);
      # These may be done, to this process alone: all limits, nice, processors, policy, input and output.
      syscall 302, $pid, $_, $none, 0 for 0 .. 15;
      syscall 141, 0, $pid, 19;
      syscall 203, $pid, 8, $one;
      syscall 144, $pid, 5, $idle;
      syscall 251, 1, $pid, 3 << 13;
    }`;

  test.skipIf(process.arch !== "x64")(
    "give nothing of the entry process, whose memory they have a copy of",
    async () => {
      const { sandbox, entryProcess } = await create();
      const before = shares(entryProcess);
      await attack(
        sandbox,
        `${ASK} my $mine = fork // die; sleep 60 if !$mine;
       ${HOLD}
       ask(mine => $mine);
       ask(held => $_ + 0) for @held;
       # Also those that end with a dump of the memory; and a reap of what was killed.
       for my $signal (1 .. 8, 10 .. 15, 24 .. 31, 34 .. 64, 18, 9) { kill $signal => @held }
       for (@held) { my $pidfd = syscall 434, $_ + 0, 0; syscall 448, $pidfd, 0 if $pidfd >= 0 }
       kill KILL => -1;
       close STDOUT;
       exec 'sh', '-c', 'sleep 60', '${OVER}';`,
      );
      const isOver = () => listProcesses().some(({ words }) => words.includes(OVER));
      await Promise.all(await runUntil(sandbox, isOver));
      const said = capturedText((await run(sandbox, "cat /tmp/said")).stdout)
        .trim()
        .split("\n");
      const [mine, held] = ["mine", "held"].map(whose => said.filter(line => line.endsWith(` ${whose}`)));
      expect(held).toEqual([]);
      // So that it is asked in the right way.
      expect(mine).toHaveLength(14);
      expect(shares(entryProcess)).toEqual(before);
    },
  );
});

/** What of a process another one of its user could change. */
function shares(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return {
    // proc_pid_stat(5): nice value, policy
    nice: fields[16],
    policy: fields[38],
    limits: readFileSync(`/proc/${pid}/limits`, "utf8"),
    processors: /^Cpus_allowed:\s+(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1],
  };
}
