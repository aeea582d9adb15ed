// How a sandbox begins, and how it ends.
import { describe } from "vitest";
import type { SandboxSpec } from "../../../src/sandbox/sandbox.ts";
import type { SandboxContract } from "./contract.ts";
import { output, processes, run, SOON_MS } from "./inside.ts";

export function lifeRules({ rule, subject }: SandboxContract): void {
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
      const { shortLifeMs: lifeMs = 2000 } = subject();
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
}
