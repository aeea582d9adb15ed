// Terminals: what they show, what they take, and when they close.
import { describe } from "vitest";
import { capturedText } from "../../../src/sandbox/captured-text.ts";
import type { Sandbox, Terminal, TerminalOptions } from "../../../src/sandbox/sandbox.ts";
import type { SandboxContract } from "./contract.ts";
import { output, processes, SOON_MS } from "./inside.ts";

export function terminalRules({ rule, unique }: SandboxContract): void {
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
      const word = `done${unique()}`;
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
        const fresh = await sandbox.terminal({ columns: 80, rows: 24 });
        await sandbox.killAgents(); // its shell may still be on its way in
        await fresh.closed;
        await fresh.readNew();
        const disposed = await open(sandbox);
        await disposed[Symbol.asyncDispose]();
        await disposed[Symbol.asyncDispose]();
        await disposed.closed;
      },
    );
  });
}
