// What every sandbox must do, whoever provides it. Many cases are faults that real projects had.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { capturedBytes, capturedText } from "../../src/sandbox/captured-text.ts";
import type {
  ExecOptions,
  ExecResult,
  Sandbox,
  SandboxImage,
  SandboxProvider,
  SandboxSpec,
  SuccessorOptions,
  Terminal,
  TerminalOptions,
} from "../../src/sandbox/sandbox.ts";
import { packFiles, packFolder, readTarFiles } from "../../src/sandbox/tar.ts";

export interface SandboxContractSubject {
  readonly provider: SandboxProvider;
  /** With /bin/sh and the usual small programs. */
  readonly image: SandboxImage;
  /** Of a sandbox that is to meet its deadline: longer than one takes to be made. 700 ms when not given. */
  readonly shortLifeMs?: number;
}

const DISK_BYTES = 32 << 20;
const TIMEOUT_MS = 20_000;
/** More than any command of these tests needs, less than the 30 s that the stuck ones sleep. */
const SOON_MS = 8_000;

/** A provider may have to make its image first. */
const OPENING_MS = 120_000;

/** A case that a provider cannot keep, and why. It has to fail there, so that the list does not outlive its reasons. */
export interface SandboxContractException {
  readonly rule: string;
  readonly reason: string;
}

/** @param open makes the provider once for all cases */
export function sandboxContract(
  open: () => Promise<SandboxContractSubject>,
  { except }: { readonly except: readonly SandboxContractException[] },
): void {
  let subject: SandboxContractSubject;
  let count = 0;
  const folders: string[] = [];
  const unused = new Set(except);

  interface Scope {
    /** The rule's own, as rules that run side by side need it. */
    readonly expect: typeof expect;
    /** Its sandboxes end with the rule. */
    readonly create: typeof create;
  }

  /** Side by side, because most of them wait for something to end; but for one that leaves no room for others. */
  function rule(name: string, check: (scope: Scope) => Promise<void>, { isAlone = false } = {}): void {
    const exception = except.find(other => other.rule === name);
    const scoped = async ({ expect }: Pick<Scope, "expect">): Promise<void> => {
      const made: Sandbox[] = [];
      try {
        await check({
          expect,
          create: async (...args) => {
            const sandbox = await create(...args);
            made.push(sandbox);
            return sandbox;
          },
        });
      } finally {
        await Promise.all(made.map(sandbox => sandbox[Symbol.asyncDispose]()));
      }
    };
    if (exception === undefined) {
      (isAlone ? test : test.concurrent)(name, scoped);
      return;
    }
    unused.delete(exception);
    test.concurrent.fails(`${name} (not here: ${exception.reason})`, scoped);
  }

  beforeAll(async () => {
    subject = await open();
  }, OPENING_MS);
  afterAll(async () => {
    await subject.provider[Symbol.asyncDispose]();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  }, OPENING_MS);

  function create(
    spec: Partial<SandboxSpec> = {},
    { lifeMs = 600_000, id = `contract/${count++}`, generation = 1 } = {},
  ): Promise<Sandbox> {
    const defaults = {
      image: subject.image,
      workdir: "/app",
      env: {},
      network: "none",
      diskBytes: DISK_BYTES,
    } as const;
    const lease = { id, generation, deadlineMs: Date.now() + lifeMs };
    return subject.provider.create({ ...defaults, ...spec }, lease);
  }

  function folderWith(files: Readonly<Record<string, string>>): string {
    const folder = mkdtempSync(join(tmpdir(), "t1-contract-"));
    folders.push(folder);
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(join(folder, name, ".."), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    return folder;
  }

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
      const { shortLifeMs: lifeMs = 2000 } = subject;
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

  describe("files", () => {
    rule(
      "of the spec are there from the start, with modes and below new folders",
      async ({ create, expect }) => {
        const folder = folderWith({
          "data/a.csv": "1,2\n",
          "data/sub/b": "b\n",
          "run.sh": "#!/bin/sh\necho ran\n",
        });
        const files = [
          { from: join(folder, "data"), to: "/srv/in" },
          { from: join(folder, "run.sh"), to: "/app/bin/run" },
        ];
        const sandbox = await create({ image: { ...subject.image, files } });
        expect(await output(sandbox, "cat /srv/in/a.csv /srv/in/sub/b; sh bin/run")).toBe("1,2\nb\nran\n");
      },
    );

    rule("that cannot be placed are named before anything runs", async ({ create, expect }) => {
      const folder = folderWith({ f: "" });
      const files = [{ from: join(folder, "f"), to: "/proc/f" }];
      await expect(create({ image: { ...subject.image, files } })).rejects.toMatchObject({
        name: "InputError",
      });
    });

    rule("go in and come out as they are", async ({ create, expect }) => {
      const sandbox = await create();
      const tar = await packFolder(folderWith({ "a/b.bin": "\0\xff", "é ü": "text\n" }));
      expect(await sandbox.upload(tar, "/data/new")).toEqual({ unpacked: true });
      expect(await output(sandbox, "cat '/data/new/é ü'")).toBe("text\n");
      const down = await sandbox.download("/data/new", 1 << 20);
      expect(await readTarFiles(await packed(down))).toEqual(await readTarFiles(tar));
    });

    rule(
      "of a missing folder, an empty one and one that is too large are told apart",
      async ({ create, expect }) => {
        const sandbox = await create();
        await run(
          sandbox,
          "mkdir empty large; dd if=/dev/zero of=large/f bs=1024 count=300 2>/dev/null; echo > file",
        );
        expect(await sandbox.download("/app/none", 100_000)).toEqual({ missing: true });
        expect(await sandbox.download("/app/file", 100_000)).toEqual({ missing: true });
        expect(await sandbox.download("/app/large", 100_000)).toEqual({ oversized: true });
        expect((await readTarFiles(await packed(await sandbox.download("/app/empty", 100_000)))).size).toBe(
          0,
        );
        expect(await output(sandbox, "echo still here")).toBe("still here\n");
      },
    );

    rule("never leave the sandbox by a link", async ({ create, expect }) => {
      const sandbox = await create();
      const outside = folderWith({ secret: "of this machine" });
      await run(sandbox, `ln -s / root; ln -s ${outside} out; ln -s ${outside}/secret secret`);
      expect(await sandbox.download("/app/out", 1 << 20)).toEqual({ missing: true });
      const tar = await packFolder(folderWith({ planted: "x" }));
      await sandbox.upload(tar, "/app/out");
      await sandbox.upload(tar, `/app/root${outside}`);
      expect(existsSync(join(outside, "planted"))).toBe(false);
      expect(await output(sandbox, `cat ${outside}/planted`)).toBe("x");
    });

    rule("of an archive with a link that leads out stay inside", async ({ create, expect }) => {
      const sandbox = await create();
      const outside = folderWith({});
      const archive = pack();
      archive.entry({ name: "way", type: "symlink", linkname: outside });
      archive.entry({ name: "way/planted" }, "x");
      archive.finalize();
      const chunks: Buffer[] = [];
      for await (const chunk of archive as AsyncIterable<Buffer>) chunks.push(chunk);
      await sandbox.upload(Buffer.concat(chunks), "/app");
      expect(existsSync(join(outside, "planted"))).toBe(false);
      expect(await output(sandbox, "echo alive")).toBe("alive\n");
    });

    // What an agent may have made of a folder, and what must be left of it beside the folder.
    const obstacles: readonly (readonly [what: string, made: string, untouched?: string])[] = [
      ["nothing", "rm -rf /fresh"],
      [
        "files of all kinds",
        "mkdir -p /fresh/a; touch /fresh/.hidden /fresh/-rf '/fresh/new\nline'; mkdir /fresh/-p",
      ],
      [
        "folders that nobody may enter or write",
        "mkdir -p /fresh/a/b; touch /fresh/a/b/f; chmod 000 /fresh/a/b /fresh/a; chmod 555 /fresh",
      ],
      [
        "links within it that lead away",
        "mkdir -p /app/kept /fresh; ln -s /app/kept /app/f /fresh",
        "/app/kept",
      ],
      ["a link to a folder", "mkdir /app/kept; touch /app/kept/f; ln -s /app/kept /fresh", "/app/kept/f"],
      ["a link to itself", "ln -s /fresh /fresh"],
      ["a file", "echo x > /fresh"],
      ["a link that leads nowhere", "ln -s /no/such /fresh"],
    ];
    rule("fill a folder that is made anew, whatever stands in its place", async ({ create, expect }) => {
      const tar = await packFolder(folderWith({ "in/f": "new\n" }));
      const check = async ([what, made, untouched = "/"]: (typeof obstacles)[number]): Promise<void> => {
        const sandbox = await create();
        await output(sandbox, made);
        expect(await sandbox.upload(tar, "/fresh", { emptied: ["/fresh"] }), what).toEqual({
          unpacked: true,
        });
        const look = `cd /fresh && pwd -P; ls -A . in; cat in/f; [ -L /fresh ] || ls -ld .; ls -d ${untouched}`;
        const [place, ...rest] = (await output(sandbox, look)).trim().split("\n");
        expect([what, place, ...rest.slice(0, 5)]).toEqual([what, "/fresh", ".:", "in", "", "in:", "f"]);
        expect([what, ...rest.slice(5)]).toEqual([
          what,
          "new",
          expect.stringMatching(/^drwxr-xr-x /),
          untouched,
        ]);
      };
      await Promise.all(obstacles.map(check));
    });

    rule("come with other folders made anew, and what is in the way of these", async ({ create, expect }) => {
      const sandbox = await create();
      await output(sandbox, "rm -rf /logs; echo x > /logs; mkdir -p /real; ln -s /real /way; touch /real/f");
      const tar = await packFolder(folderWith({ f: "tests\n" }));
      const emptied = ["/logs/verifier", "/way/to/it", "/tests"];
      expect(await sandbox.upload(tar, "/tests", { emptied })).toEqual({ unpacked: true });
      const look = "cat /tests/f; ls -A /logs /logs/verifier /real /real/to/it";
      expect((await output(sandbox, look)).trim().split(/\n+/)).toEqual([
        ...["tests", "/logs:", "verifier", "/logs/verifier:"],
        ...["/real:", "f", "to", "/real/to/it:"],
      ]);
    });

    rule("fill a folder that held a tree deeper than any path", async ({ create, expect }) => {
      const sandbox = await create();
      const deep =
        "mkdir /fresh; cd /fresh; i=0; while [ $i -lt 60 ]; do i=$((i+1)); mkdir $d && cd -P $d || exit 1; done";
      const name = "d".repeat(100);
      expect((await run(sandbox, `d=${name}; ${deep}; touch bottom`)).end).toEqual({
        kind: "exited",
        exitCode: 0,
      });
      const tar = await packFolder(folderWith({ f: "" }));
      expect(await sandbox.upload(tar, "/fresh", { emptied: ["/fresh"] })).toEqual({ unpacked: true });
      expect(await output(sandbox, "ls -A /fresh")).toBe("f\n");
    });

    rule("are refused where a mount cannot be made anew", async ({ create, expect }) => {
      const sandbox = await create();
      const tar = await packFolder(folderWith({ f: "" }));
      for (const folder of ["/proc", "/dev/shm", "/"]) {
        const result = await sandbox.upload(tar, "/app", { emptied: [folder] });
        expect(result, folder).toHaveProperty(
          "refused",
          expect.stringMatching(/cannot (empty|replace|make)/),
        );
      }
      expect(await output(sandbox, "ls -A; echo x > /dev/shm/f; cat /dev/shm/f")).toBe("x\n");
    });

    rule("that do not fit are refused, and the sandbox lives on", async ({ create, expect }) => {
      const sandbox = await create();
      const tar = await packFolder(folderWith({ big: "x".repeat(DISK_BYTES + 1) }));
      expect(await sandbox.upload(tar, "/app")).toHaveProperty("refused");
      expect(await output(sandbox, "rm -f big; echo ok")).toBe("ok\n");
    });

    rule("have one limit together, wherever they are written", async ({ create, expect }) => {
      const sandbox = await create();
      const most = Math.floor((DISK_BYTES / 1024) * 0.6);
      const write = (path: string) => run(sandbox, `dd if=/dev/zero of=${path} bs=1024 count=${most}`);
      expect((await write("/app/a")).end).toEqual({ kind: "exited", exitCode: 0 });
      expect((await write("/tmp/b")).end).not.toEqual({ kind: "exited", exitCode: 0 });
      expect((await run(sandbox, "rm /app/a /tmp/b && echo x > /root/c")).end).toEqual({
        kind: "exited",
        exitCode: 0,
      });
    });
  });

  describe("killing", () => {
    rule("ends whatever runs: background, another session, stopped, orphaned", async ({ create, expect }) => {
      const sandbox = await create();
      await run(
        sandbox,
        "echo kept > f; sleep 30 & (sleep 30 &) ; setsid sleep 30 & sleep 30 & kill -STOP $!; sleep 0.1",
      );
      const stuck = run(sandbox, "trap '' TERM INT HUP; while :; do sleep 0.05; done");
      await expect.poll(() => processes(sandbox, "sleep"), { timeout: SOON_MS }).toBeGreaterThanOrEqual(4);
      await sandbox.killAgents();
      expect((await stuck).end).toEqual({ kind: "signalled", signal: "SIGKILL" });
      expect(await processes(sandbox, "sleep")).toBe(0);
      expect(await output(sandbox, "cat f")).toBe("kept\n");
    });

    rule("is not stopped by a process that kills whatever it sees", async ({ create, expect }) => {
      const sandbox = await create();
      await run(
        sandbox,
        "setsid sh -c 'echo up > f; while :; do kill -9 -1; done' >/dev/null 2>&1 & sleep 0.1",
      );
      await sandbox.killAgents();
      expect(await output(sandbox, "cat f")).toBe("up\n");
    });

    rule("outruns processes that start new ones all the time", async ({ create, expect }) => {
      const sandbox = await create();
      await run(
        sandbox,
        "f() { while :; do sleep 0.01 & sleep 0.01; done; }; for i in 1 2 3; do f >/dev/null 2>&1 & done; sleep 0.2",
      );
      await sandbox.killAgents();
      expect(await processes(sandbox, "sleep")).toBe(0);
    });

    rule("of everything by the agent ends its command, not the sandbox", async ({ create, expect }) => {
      const sandbox = await create();
      await run(sandbox, "echo kept > f; sleep 30 & kill -9 -1; kill -9 1; kill -TERM 1; true");
      expect(await output(sandbox, "cat f")).toBe("kept\n");
      expect(await processes(sandbox, "sleep")).toBe(0);
    });
  });

  describe("changes", () => {
    const placed = () => ({
      ...subject.image,
      files: [{ from: folderWith({ "a.txt": "one\n", "sub/b.txt": "two\n" }), to: "/app" }],
    });
    const changesOf = async (sandbox: Sandbox) =>
      Object.fromEntries(
        (await sandbox.changedFiles()).map(({ path, change, kind }) => [path, `${change} ${kind}`]),
      );

    rule("are none at first, and none for what is only read", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      expect(await changesOf(sandbox)).toEqual({});
      await run(sandbox, "cat a.txt sub/b.txt /etc/passwd; ls -l / /logs");
      expect(await changesOf(sandbox)).toEqual({});
    });

    rule(
      "are those of now, also after all that ran was killed and more was done",
      async ({ create, expect }) => {
        const sandbox = await create({ image: placed() });
        await run(sandbox, "echo x > one");
        await sandbox.killAgents();
        expect(await changesOf(sandbox)).toEqual({ "/app/one": "added file" });
        const tar = await packFiles([{ from: folderWith({ two: "y" }), to: "/app" }]);
        expect(await sandbox.upload(tar, "/")).toEqual({ unpacked: true });
        expect(await changesOf(sandbox)).toEqual({ "/app/one": "added file", "/app/two": "added file" });
        await sandbox.killAgents();
        await run(sandbox, "rm one two");
        expect(await changesOf(sandbox)).toEqual({});
      },
    );

    rule("name what was added, modified and deleted, and its kind", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(
        sandbox,
        "echo x > new; mkdir d; echo y > d/f; ln -s nowhere l; echo more >> a.txt; rm -r sub; chmod 700 /logs/agent",
      );
      expect(await changesOf(sandbox)).toEqual({
        "/app/new": "added file",
        "/app/d": "added folder",
        "/app/d/f": "added file",
        "/app/l": "added link",
        "/app/a.txt": "modified file",
        "/app/sub": "deleted folder",
        "/app/sub/b.txt": "deleted file",
        "/logs/agent": "modified folder",
      });
    });

    rule("say where links lead, also hard links to them", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(
        sandbox,
        "ln -s ../no/where l; ln l hard 2>/dev/null || ln -P l hard; rm a.txt; ln -s /x a.txt",
      );
      const links = (await sandbox.changedFiles()).map(({ path, kind, target }) => [path, kind, target]);
      expect(links).toEqual([
        ["/app/a.txt", "link", "/x"],
        ["/app/hard", "link", "../no/where"],
        ["/app/l", "link", "../no/where"],
      ]);
    });

    rule("are seen when size and time of a file were put back", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(sandbox, "touch -r a.txt ref; echo two > a.txt; touch -r ref a.txt; rm ref");
      expect(await changesOf(sandbox)).toEqual({ "/app/a.txt": "modified file" });
    });

    rule("are seen when size and time of a file of the image were put back", async ({ create, expect }) => {
      const sandbox = await create();
      const file = await output(
        sandbox,
        "f=/etc/passwd; [ -e $f ] || f=/bin/yes; printf $f; touch -r $f ref; tr a-z A-Z < $f > new; cat new > $f; touch -r ref $f; rm ref new",
      );
      expect(await changesOf(sandbox)).toEqual({ [file]: "modified file" });
    });

    rule("are seen when two that came at the same time changed places", async ({ create, expect }) => {
      const files = [{ from: folderWith({ "a/f": "one\n", "b/f": "two\n" }), to: "/app" }];
      const sandbox = await create({ image: { ...subject.image, files } });
      await output(sandbox, "mv a c; mv b a; mv c b");
      expect(await changesOf(sandbox)).toEqual({
        "/app/a/f": "modified file",
        "/app/b/f": "modified file",
      });
    });

    rule("are seen when one thing stands in another's place", async ({ create, expect }) => {
      const sandbox = await create({ image: placed() });
      await output(sandbox, "rm a.txt; mkdir a.txt; rm -r sub; ln -s /etc sub");
      expect(await changesOf(sandbox)).toEqual({
        "/app/a.txt": "modified folder",
        "/app/sub": "modified link",
        "/app/sub/b.txt": "deleted file",
      });
    });

    rule("go to a successor as they are, and its own begin there", async ({ create, expect }) => {
      const first = await create({ image: placed(), env: { COLOUR: "red" } });
      await output(
        first,
        "echo x > new; chmod 750 new; ln new hard; ln -s new l; mkdir -p d/e; chmod 700 d; rm sub/b.txt; echo more >> a.txt; " +
          "printf b > 'name with\nbreak'; touch -r new -d '2001-02-03 04:05:06' old 2>/dev/null || touch -d '2001-02-03 04:05:06' old",
      );
      await run(first, "setsid sleep 30 & (sleep 30 &)");
      const before = await changesOf(first);
      const second = await successor(first, []);
      expect(await changesOf(second)).toEqual(before);
      expect(await processes(second, "sleep")).toBe(0);
      await first[Symbol.asyncDispose]();
      const look =
        "ls -ld new d d/e old; [ new -ef hard ] && echo linked; readlink l; cat a.txt 'name with\nbreak'; ls sub; echo $COLOUR $PWD";
      const seen = await output(second, look);
      expect(seen).toMatch(
        /^drwx------.* d\ndrwxr-xr-x.* d\/e\n-rwxr-x---.* new\n.* 2001.* old\nlinked\nnew\none\nmore\nbred \/app\n$/,
      );
      await output(second, "echo z > z");
      expect(await changesOf(second)).toEqual({ ...before, "/app/z": "added file" });
    });

    rule("have names that are bytes, and reach a successor by these", async ({ create, expect }) => {
      const first = await create({ image: placed() });
      const name = `$(printf 'd\\377\\303\\251')`;
      await output(
        first,
        `n=${name}; mkdir -p "$n/$n"; echo x > "$n/$n/f$n"; ln "$n/$n/f$n" "hard$n"; ln -s "$n/." "l$n"; echo y > "$(printf 'd\\376')"; echo z > "$(printf 'd\\376x')"`,
      );
      const shown = "d\ufffdé";
      const changes = {
        [`/app/${shown}`]: "added folder",
        [`/app/${shown}/${shown}`]: "added folder",
        [`/app/${shown}/${shown}/f${shown}`]: "added file",
        [`/app/hard${shown}`]: "added file",
        [`/app/l${shown}`]: "added link",
        "/app/d\ufffd": "added file",
        "/app/d\ufffdx": "added file",
      };
      expect(await changesOf(first)).toEqual(changes);
      const second = await successor(first, ["/app/d\ufffdx"]);
      const { "/app/d\ufffdx": left, ...carried } = changes;
      expect([left, await changesOf(second)]).toEqual(["added file", carried]);
      expect(await output(second, `n=${name}; cat "l$n/$n/f$n" "hard$n" "$(printf 'd\\376')"`)).toBe(
        "x\nx\ny\n",
      );
      expect(
        await second.upload(await packFolder(folderWith({ f: "" })), "/app", { emptied: ["/app"] }),
      ).toEqual({
        unpacked: true,
      });
      expect(await output(second, "ls")).toBe("f\n");
    });

    rule(
      "deeper than any path are carried, or break the sandbox: no fault of its provider",
      async ({ create, expect }) => {
        const first = await create();
        await output(
          first,
          `n=$(printf '%0200d' 0); i=0; while [ $i -lt 30 ]; do i=$((i+1)); mkdir "$n" && cd -P "$n" || exit 1; done`,
        );
        const listed = await first.changedFiles().then(
          () => "listed",
          error => error.name,
        );
        expect(["listed", "SandboxBroken"]).toContain(listed);
        const lease = { id: `contract/${count++}`, generation: 1, deadlineMs: Date.now() + 600_000 };
        const next = await first.successor(lease, { without: [] });
        if (!("refused" in next)) await next[Symbol.asyncDispose]();
        expect(await output(first, "echo ok")).toBe("ok\n");
      },
    );

    rule("stay behind where that is asked for, with what is below them", async ({ create, expect }) => {
      const first = await create({ image: placed() });
      await output(
        first,
        "echo bad > /etc/ld.so.preload; echo bad > a.txt; rm sub/b.txt; mkdir -p /tests/x; echo bad > /tests/x/y; ln /tests/x/y kept; echo ok > /etc/own.conf; rm /etc/ld.so.preload; echo bad > /etc/ld.so.preload.d",
      );
      const second = await successor(first, ["/tests", "/app/a.txt", "/app/sub", "/etc/ld.so.preload.d"]);
      expect(
        await output(
          second,
          "cat a.txt sub/b.txt kept /etc/own.conf; ls -d /tests /etc/ld.so.preload.d 2>/dev/null || true",
        ),
      ).toBe("one\ntwo\nbad\nok\n");
    });

    rule("stay behind also where that is found out late, or not at all", async ({ create, expect }) => {
      const first = await create({ image: placed() });
      await output(first, "echo bad > a.txt; echo good > new");
      const late = new Promise<string[]>(resolve => setTimeout(() => resolve(["/app/a.txt"]), 500));
      expect(await output(await successor(first, late), "cat a.txt new")).toBe("one\ngood\n");
      await expect(successor(first, Promise.reject(new Error("nobody knows")))).rejects.toThrow(
        "nobody knows",
      );
      expect(await output(await successor(first, []), "cat a.txt")).toBe("bad\n");
    });

    rule("fit into a successor when the first is full, with room to write", async ({ create, expect }) => {
      const first = await create({ diskBytes: 4 << 20 });
      await run(first, "echo work > w; dd if=/dev/zero of=big bs=65536 2>/dev/null; echo x > y");
      const second = await successor(first, []);
      expect(await output(second, "cat w; ls -d big; echo room > r; cat r")).toBe("work\nbig\nroom\n");
    });

    async function successor(first: Sandbox, without: SuccessorOptions["without"]): Promise<Sandbox> {
      const lease = { id: `contract/next${count++}`, generation: 1, deadlineMs: Date.now() + 600_000 };
      const made = await first.successor(lease, { without });
      if ("refused" in made) throw new Error(made.refused);
      return made;
    }
  });

  describe("a terminal", () => {
    async function open(
      sandbox: Sandbox,
      options: TerminalOptions = { columns: 100, rows: 30 },
    ): Promise<Terminal> {
      const terminal = await sandbox.terminal(options);
      await terminal.send("PS1='ready> '\n");
      await untilLineEnds(terminal, "ready>");
      await terminal.readNew();
      return terminal;
    }

    /** Types a line and waits for a word that stands on the screen only when the line has run. */
    async function type(terminal: Terminal, line: string): Promise<void> {
      const word = `done${count++}`;
      await terminal.send(`${line}; printf '%s%s\\n' ${word.slice(0, 2)} ${word.slice(2)}\n`);
      await untilLineEnds(terminal, word);
    }

    async function untilLineEnds(terminal: Terminal, word: string): Promise<void> {
      const until = performance.now() + SOON_MS;
      while (!(await terminal.screen()).some(line => line.endsWith(word))) {
        if (performance.now() > until)
          throw new Error(`no ${word} on the screen:\n${(await terminal.screen()).join("\n")}`);
        await new Promise(resolve => setTimeout(resolve, 10));
      }
    }

    rule(
      "shows what a person would see, and hands out what is new as raw bytes",
      async ({ create, expect }) => {
        const sandbox = await create();
        const terminal = await open(sandbox);
        await type(terminal, "printf '\\033[2J\\033[H'; printf 'a\\tb\\033[1mbold\\033[0m\\n'");
        const screen = await terminal.screen();
        expect(screen).toHaveLength(30);
        expect(screen).toContain("a       bbold");
        expect(capturedText(await terminal.readNew())).toContain("\x1b[1mbold\x1b[0m");
        expect(capturedText(await terminal.readNew())).toBe("");
      },
    );

    rule(
      "keeps lines that scrolled out, as many as were asked for, above those on the screen",
      async ({ create, expect }) => {
        const sandbox = await create();
        const terminal = await open(sandbox, { columns: 80, rows: 10, historyLines: 50 });
        await type(terminal, "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo $i; done");
        const { history, screen, applicationCursorKeys } = await terminal.view();
        expect(screen).toEqual(await terminal.screen());
        expect(applicationCursorKeys).toBe(false);
        expect(history).toHaveLength(50);
        const numbers = [...history, ...screen].filter(line => /^\d+$/.test(line)).map(Number);
        const first = numbers[0] ?? 0;
        expect(numbers).toEqual(Array.from({ length: 201 - first }, (_, index) => first + index));
        expect(first).toBeGreaterThan(130);
      },
    );

    rule("is a terminal to the programs in it, and follows its size", async ({ create, expect }) => {
      const sandbox = await create({ env: { COLOUR: "red" } });
      const terminal = await open(sandbox, { columns: 80, rows: 24 });
      await type(terminal, "[ -t 0 ] && [ -t 1 ] && echo $COLOUR $(stty size) $PWD");
      expect(await terminal.screen()).toContain("red 24 80 /app");
      await terminal.resize(120, 40);
      await type(terminal, "stty size");
      expect(await terminal.screen()).toContain("40 120");
      expect(await terminal.screen()).toHaveLength(40);
    });

    rule("takes long keystrokes in full, counted in bytes", async ({ create, expect }) => {
      const sandbox = await create();
      const terminal = await open(sandbox);
      for (const text of [`${"x".repeat(99)}\n`.repeat(200), `${"é".repeat(100)}\n`.repeat(60)]) {
        const keys = `cat > f <<'EOF'\n${text}EOF\n`;
        expect(await terminal.send(keys)).toBe(Buffer.byteLength(keys));
        await type(terminal, ":");
        expect(await output(sandbox, "cat f")).toBe(text);
      }
    });

    rule("stops a running program by its control keys", async ({ create, expect }) => {
      const sandbox = await create();
      const terminal = await open(sandbox);
      await terminal.send("sleep 30\n");
      await expect.poll(() => processes(sandbox, "sleep"), { timeout: SOON_MS }).toBe(1);
      await terminal.send("\x03");
      await type(terminal, ":");
      expect(await processes(sandbox, "sleep")).toBe(0);
    });

    rule(
      "keeps bounded output of a program that never stops, and answers meanwhile",
      async ({ create, expect }) => {
        const sandbox = await create();
        const terminal = await sandbox.terminal({ columns: 80, rows: 24, outputLimitBytes: 1000 });
        await terminal.send("yes\n");
        await expect.poll(() => terminal.screen(), { timeout: SOON_MS }).toContain("y");
        await new Promise(resolve => setTimeout(resolve, 200));
        const { head, tail, omittedBytes } = await terminal.readNew();
        expect(head.length + tail.length).toBe(1000);
        expect(omittedBytes).toBeGreaterThan(0);
        expect(await output(sandbox, "echo still here")).toBe("still here\n");
      },
    );

    rule(
      "closes when its shell ends, is killed or disposed of, and then takes no keys",
      async ({ create, expect }) => {
        const sandbox = await create();
        const ended = await open(sandbox);
        await ended.send("exit\n");
        await ended.closed;
        expect(await ended.send("echo x\n")).toBe(0);
        const killed = await open(sandbox);
        await sandbox.killAgents();
        await killed.closed;
        const disposed = await open(sandbox);
        await disposed[Symbol.asyncDispose]();
        await disposed[Symbol.asyncDispose]();
        await disposed.closed;
      },
    );
  });

  describe("a sandbox", () => {
    rule(
      "is the same for the same lease and generation, and another for the next",
      async ({ create, expect }) => {
        const id = "contract/twice";
        const [first, again] = await Promise.all([create({}, { id }), create({}, { id })]);
        const next = await create({}, { id, generation: 2 });
        await run(first, "echo 1 > f");
        expect(await output(again, "cat f")).toBe("1\n");
        expect(await output(next, "cat f 2>/dev/null || echo none")).toBe("none\n");
      },
    );

    rule("shares nothing with another one", async ({ create, expect }) => {
      const [one, other] = [await create(), await create()];
      await run(one, "sleep 30 & echo x > /tmp/f; echo x > /dev/shm/f");
      expect(await processes(other, "sleep")).toBe(0);
      expect(await output(other, "cat /tmp/f /dev/shm/f 2>/dev/null || echo none")).toBe("none\n");
    });

    rule(
      "is lost to everybody once it is disposed of, which may be said twice",
      async ({ create, expect }) => {
        const sandbox = await create();
        const running = run(sandbox, "sleep 30");
        const lost = expect(running).rejects.toMatchObject({ name: "SandboxLost" });
        await sandbox[Symbol.asyncDispose]();
        await sandbox[Symbol.asyncDispose]();
        await lost;
        await expect(run(sandbox, "true")).rejects.toMatchObject({ name: "SandboxLost" });
        await expect(sandbox.terminal({ columns: 80, rows: 24 })).rejects.toMatchObject({
          name: "SandboxLost",
        });
        await expect(sandbox.upload(new Uint8Array(1024), "/app")).rejects.toMatchObject({
          name: "SandboxLost",
        });
        await expect(sandbox.download("/app", 1024)).rejects.toMatchObject({ name: "SandboxLost" });
        await expect(sandbox.killAgents()).rejects.toMatchObject({ name: "SandboxLost" });
      },
    );

    rule("ends at its deadline, used or not", async ({ create, expect }) => {
      const { shortLifeMs: lifeMs = 2000 } = subject;
      const [used, unused] = await Promise.all([create({}, { lifeMs }), create({}, { lifeMs })]);
      await Promise.allSettled([run(used, "sleep 30")]);
      for (const sandbox of [used, unused]) {
        const use = () =>
          run(sandbox, "true").then(
            () => "alive",
            error => error.name,
          );
        await expect.poll(use, { timeout: SOON_MS + lifeMs }).toBe("SandboxLost");
      }
    });

    rule("is made from a spec that can be kept, else the spec is named", async ({ create, expect }) => {
      const wrong: Partial<SandboxSpec>[] = [
        { workdir: "relative" },
        { workdir: "/a/../b" },
        { env: { "a b": "1" } },
      ];
      for (const spec of wrong) await expect(create(spec)).rejects.toMatchObject({ name: "InputError" });
    });

    rule(
      "starts beside many others",
      async ({ create, expect }) => {
        const sandboxes = await Promise.all(Array.from({ length: 24 }, () => create()));
        const outputs = await Promise.all(
          sandboxes.map((sandbox, index) => output(sandbox, `echo ${index}`)),
        );
        expect(outputs).toEqual(sandboxes.map((_, index) => `${index}\n`));
      },
      { isAlone: true },
    );
  });

  // As a test, because rules are collected after this function has returned.
  test("an exception names a rule", () => expect([...unused].map(({ rule }) => rule)).toEqual([]));
}

function run(sandbox: Sandbox, command: string, options: Partial<ExecOptions> = {}): Promise<ExecResult> {
  return sandbox.exec(command, { timeoutMs: TIMEOUT_MS, ...options });
}

async function output(
  sandbox: Sandbox,
  command: string,
  options: Partial<ExecOptions> = {},
): Promise<string> {
  const { end, stdout, stderr } = await run(sandbox, command, options);
  expect(end, `${command.slice(0, 200)}: ${capturedText(stderr)}`).toEqual({ kind: "exited", exitCode: 0 });
  return capturedText(stdout);
}

/** How many processes of a name are inside, without a program such as ps. */
async function processes(sandbox: Sandbox, name: string): Promise<number> {
  const names = await output(
    sandbox,
    'for f in /proc/[0-9]*/stat; do read -r pid comm state rest < "$f" && echo "$comm $state"; done 2>/dev/null; true',
  );
  return names
    .split("\n")
    .filter(line => line === `(${name}) S` || line === `(${name}) R` || line === `(${name}) T`).length;
}

async function packed(result: Awaited<ReturnType<Sandbox["download"]>>): Promise<Uint8Array> {
  if ("tar" in result) return result.tar;
  throw new Error(`nothing was packed: ${JSON.stringify(result)}`);
}
