// What a command is given, what it leaves and how it ends.
import { describe } from "vitest";
import { capturedBytes, capturedText } from "../../../src/sandbox/captured-text.ts";
import type { SandboxContract } from "./contract.ts";
import { output, processes, run, SOON_MS } from "./inside.ts";

export function commandRules({ rule, subject }: SandboxContract): void {
  describe("a command", () => {
    rule(
      "runs as it is given: quotes, here-documents and case branches included",
      async ({ create, expect }) => {
        const sandbox = await create();
        const command = `for w in "a b" 'c"d'; do case "$w" in a*) printf '%s;' "$w";; *) cat <<'EOF'\n$w "\\n" \`x\`\nEOF\n;; esac; done`;
        expect(await output(sandbox, command)).toBe('a b;$w "\\n" `x`\n');
      },
    );

    rule("returns after a here-document that writes a file", async ({ create, expect }) => {
      const sandbox = await create();
      expect(await output(sandbox, "cat <<'EOF' > f\nline 1\n  $HOME\nEOF\ncat f")).toBe("line 1\n  $HOME\n");
    });

    rule(
      "says how it ended: exit code, signal or time limit, never one for another",
      async ({ create, expect }) => {
        const sandbox = await create();
        expect((await run(sandbox, "exit 0")).end).toEqual({ kind: "exited", exitCode: 0 });
        expect((await run(sandbox, "exit 37")).end).toEqual({ kind: "exited", exitCode: 37 });
        expect((await run(sandbox, "kill -KILL $$")).end).toEqual({ kind: "signalled", signal: "SIGKILL" });
        expect((await run(sandbox, "sleep 30", { timeoutMs: 150 })).end).toEqual({
          kind: "timed-out",
          limitMs: 150,
        });
        expect((await run(sandbox, "nosuchprogram")).end).toEqual({ kind: "exited", exitCode: 127 });
      },
    );

    rule(
      "returns when it ends, though a background process holds its output open",
      async ({ create, expect }) => {
        const sandbox = await create();
        const result = await run(sandbox, "(sleep 30 &) ; echo hi");
        expect(capturedText(result.stdout)).toBe("hi\n");
        expect(result.durationMs).toBeLessThan(SOON_MS);
      },
    );

    rule("leaves its background process alive, which may go on printing", async ({ create, expect }) => {
      const sandbox = await create();
      await run(sandbox, "while sleep 0.02; do echo tick; echo >> ticks; done & echo started");
      const ticks = async () => Number(await output(sandbox, "wc -l < ticks"));
      await expect.poll(ticks, { timeout: SOON_MS }).toBeGreaterThan(5);
    });

    rule("finds its input at its end when it gets none", async ({ create, expect }) => {
      const sandbox = await create();
      const { end, durationMs } = await run(sandbox, "cat > f");
      expect(end).toEqual({ kind: "exited", exitCode: 0 });
      expect(durationMs).toBeLessThan(SOON_MS);
    });

    rule("leaves no zombies, though it waits for none of its children", async ({ create, expect }) => {
      const sandbox = await create();
      await run(sandbox, "for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep 0.2");
      const states = await output(sandbox, "cat /proc/[0-9]*/stat 2>/dev/null; true");
      expect(states.split("\n").filter(line => / Z /.test(line))).toEqual([]);
    });

    rule("gets all of its input, and may leave it unread", async ({ create, expect }) => {
      const sandbox = await create();
      const stdin = Buffer.alloc(300_000, "0123456789");
      expect(await output(sandbox, "wc -c", { stdin })).toMatch(/^\s*300000\n$/);
      expect((await run(sandbox, "exit 4", { stdin })).end).toEqual({ kind: "exited", exitCode: 4 });
    });

    rule("runs in the working directory, or where it is told", async ({ create, expect }) => {
      const sandbox = await create({ workdir: "/work/deep" });
      expect(await output(sandbox, "pwd")).toBe("/work/deep\n");
      expect(await output(sandbox, "pwd", { cwd: "/tmp" })).toBe("/tmp\n");
      const missing = await run(sandbox, "pwd", { cwd: "/no/such" });
      expect(missing.end).toMatchObject({ kind: "exited", exitCode: 126 });
      expect(capturedText(missing.stdout)).toBe("");
    });

    rule(
      "starts in the environment of the spec, whatever the one before exported",
      async ({ create, expect }) => {
        const sandbox = await create({ env: { COLOUR: "red", PATH: "/opt/tool:/usr/bin:/bin" } });
        expect(await output(sandbox, 'export COLOUR=blue LEFT=over; echo "$COLOUR"')).toBe("blue\n");
        const show = 'echo "$COLOUR|$LEFT|$ONCE|$PATH"';
        expect(await output(sandbox, show)).toBe("red|||/opt/tool:/usr/bin:/bin\n");
        expect(await output(sandbox, show, { env: { COLOUR: "green", ONCE: "a 'b' $c" } })).toBe(
          "green||a 'b' $c|/opt/tool:/usr/bin:/bin\n",
        );
        expect(await output(sandbox, show)).toBe("red|||/opt/tool:/usr/bin:/bin\n");
      },
    );

    rule("may be far longer than one word of a command line", async ({ create, expect }) => {
      const sandbox = await create();
      const text = "🎉é\n".repeat(30_000);
      const command = `set -- a b\ncat > f <<'EOF'\n${text}EOF\nwc -c < f; echo $#`;
      expect((await output(sandbox, command)).split(/\s+/).filter(Boolean)).toEqual([
        `${Buffer.byteLength(text)}`,
        "2",
      ]);
    });

    rule("that no shell can be given fails as a command, not as an exception", async ({ create, expect }) => {
      const sandbox = await create();
      for (const command of ["echo a\0b", `: ${"x".repeat(3 << 20)}`]) {
        const { end, stderr } = await run(sandbox, command);
        expect(end).toEqual({ kind: "exited", exitCode: 126 });
        expect(capturedText(stderr)).toMatch(/NUL|too long/);
      }
    });

    rule("runs beside others without mixing their output", async ({ create, expect }) => {
      const sandbox = await create();
      const numbers = Array.from({ length: 16 }, (_, index) => index);
      const outputs = await Promise.all(
        numbers.map(n => output(sandbox, `echo ${n}; sleep 0.05; echo ${n}`)),
      );
      expect(outputs).toEqual(numbers.map(n => `${n}\n${n}\n`));
    });

    rule("can open its output again by name", async ({ create, expect }) => {
      const sandbox = await create();
      const result = await run(
        sandbox,
        "echo out > /dev/stdout; echo err > /dev/stderr; echo in | cat /dev/stdin",
      );
      expect(capturedText(result.stdout)).toBe("out\nin\n");
      expect(capturedText(result.stderr)).toBe("err\n");
    });
  });

  describe("output", () => {
    rule(
      "is kept byte for byte: white space, escape sequences, NUL and what is no UTF-8",
      async ({ create, expect }) => {
        const sandbox = await create();
        for (const printed of ["  a\\n\\n", "\\033[31mred\\000\\033[0m", "\\377\\376\\200", "a\\r\\nb\\r"]) {
          const expected = Buffer.from(
            printed
              .replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
              .replaceAll("\\n", "\n")
              .replaceAll("\\r", "\r"),
            "latin1",
          );
          const { stdout } = await run(sandbox, `printf '${printed}'`);
          expect(Buffer.from(capturedBytes(stdout))).toEqual(expected);
          expect(capturedText(stdout)).toBe(expected.toString());
        }
      },
    );

    rule("and errors come apart", async ({ create, expect }) => {
      const sandbox = await create();
      const { stdout, stderr } = await run(sandbox, "echo one; echo two >&2; echo three");
      expect([capturedText(stdout), capturedText(stderr)]).toEqual(["one\nthree\n", "two\n"]);
    });

    rule("beyond the limit keeps its head and tail, cut between characters", async ({ create, expect }) => {
      const sandbox = await create();
      const { stdout } = await run(sandbox, "printf 'x🎉🎉🎉🎉🎉🎉🎉🎉y'", { outputLimitBytes: 12 });
      expect(stdout.head.length + stdout.tail.length).toBe(12);
      expect(stdout.omittedBytes).toBe(22);
      expect(capturedText(stdout)).toBe("x🎉\n[… 24 bytes left out …]\n🎉y");
    });

    rule("of a command without end is bounded too, when time cuts it", async ({ create, expect }) => {
      const sandbox = await create();
      const { end, stdout } = await run(sandbox, "yes", { timeoutMs: 300, outputLimitBytes: 1000 });
      expect(end.kind).toBe("timed-out");
      expect(stdout.head.length + stdout.tail.length).toBe(1000);
      expect(stdout.omittedBytes).toBeGreaterThan(100_000);
    });
  });

  describe("a command that does not end", () => {
    rule("is ended with all of its process group", async ({ create, expect }) => {
      const sandbox = await create();
      const { end } = await run(sandbox, "sleep 30 & sleep 31; true", { timeoutMs: 200 });
      expect(end).toEqual({ kind: "timed-out", limitMs: 200 });
      expect(await processes(sandbox, "sleep")).toBe(0);
    });

    rule("never runs, or is ended, however little time it gets", async ({ create, expect }) => {
      const sandbox = await create();
      const limits = Array.from({ length: 24 }, (_, index) => 1 + index / 2);
      const results = await Promise.all(limits.map(timeoutMs => run(sandbox, "sleep 30", { timeoutMs })));
      expect(results.map(({ end }) => end.kind)).toEqual(limits.map(() => "timed-out"));
      expect(await processes(sandbox, "sleep")).toBe(0);
    });

    rule("keeps what it printed until then", async ({ create, expect }) => {
      const sandbox = await create();
      const { stdout } = await run(sandbox, "echo before; sleep 30; echo after", { timeoutMs: 300 });
      expect(capturedText(stdout)).toBe("before\n");
    });

    rule(
      "may put its files in order at TERM, and is killed when it ignores it",
      async ({ create, expect }) => {
        const sandbox = await create();
        await run(sandbox, "trap 'echo saved > f; exit' TERM; while :; do sleep 0.01; done", {
          timeoutMs: 300,
        });
        expect(await output(sandbox, "cat f")).toBe("saved\n");
        const stubborn = await run(sandbox, "trap '' TERM; sleep 30; sleep 31", { timeoutMs: 100 });
        expect(stubborn.end.kind).toBe("timed-out");
        expect(stubborn.durationMs).toBeLessThan(SOON_MS);
        expect(await processes(sandbox, "sleep")).toBe(0);
      },
    );

    rule("is ended when it has stopped itself, and the next one runs", async ({ create, expect }) => {
      const sandbox = await create();
      expect((await run(sandbox, "kill -STOP $$", { timeoutMs: 200 })).end.kind).toBe("timed-out");
      expect(await output(sandbox, "echo ok")).toBe("ok\n");
    });

    rule("is ended at the lease's deadline, were its own limit infinite", async ({ create, expect }) => {
      const { shortLifeMs: lifeMs = 2000 } = subject();
      const sandbox = await create({}, { lifeMs });
      const startedAt = performance.now();
      const end = await run(sandbox, "sleep 30", { timeoutMs: Number.POSITIVE_INFINITY }).then(
        result => result.end.kind,
        error => error.name,
      );
      expect(["timed-out", "SandboxLost"]).toContain(end);
      expect(performance.now() - startedAt).toBeLessThan(SOON_MS + lifeMs);
    });

    rule("is ended when its caller gives up, who gets his own reason back", async ({ create, expect }) => {
      const sandbox = await create();
      const control = new AbortController();
      const reason = new Error("enough");
      setTimeout(() => control.abort(reason), 100);
      await expect(run(sandbox, "sleep 30; true", { signal: control.signal })).rejects.toBe(reason);
      expect(await processes(sandbox, "sleep")).toBe(0);
      await expect(run(sandbox, "echo late > f", { signal: control.signal })).rejects.toBe(reason);
      expect(await output(sandbox, "cat f 2>/dev/null || echo none")).toBe("none\n");
    });
  });

  describe("a request id", () => {
    rule("runs once, however often and whenever it is asked for", async ({ create, expect }) => {
      const sandbox = await create();
      const ask = () => run(sandbox, "sleep 0.1; echo x >> f; echo done", { requestId: "turn-1" });
      const [first, second] = await Promise.all([ask(), ask()]);
      const third = await ask();
      expect(second).toEqual(first);
      expect(third).toEqual(first);
      expect(await output(sandbox, "cat f")).toBe("x\n");
    });

    rule("belongs to one command and one sandbox", async ({ create, expect }) => {
      const [sandbox, other] = [await create(), await create()];
      await run(sandbox, "echo 1", { requestId: "a" });
      await expect(run(sandbox, "echo 2", { requestId: "a" })).rejects.toThrow("belongs to one command");
      expect(await output(other, "echo 3", { requestId: "a" })).toBe("3\n");
    });
  });
}
