// An end to all processes inside.
import { describe } from "vitest";
import type { SandboxContract } from "./contract.ts";
import { output, processes, run, SOON_MS } from "./inside.ts";

export function killingRules({ rule }: SandboxContract): void {
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
}
