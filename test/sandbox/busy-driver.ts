// A driver for tests to kill at any moment: makes sandboxes, works in them, carries them over and ends them, several at a
// time, without end. Arguments: provider, folder for it, image, mark that its commands carry.
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { createDockerProvider } from "../../src/sandbox/docker/provider.ts";
import type { SandboxSpec } from "../../src/sandbox/sandbox.ts";

const [, , name, runParent = "", reference = "", mark = ""] = process.argv;
const isDocker = name === "docker";
const provider = isDocker ? await createDockerProvider({ runParent }) : createBubblewrapProvider(runParent);
const spec: SandboxSpec = {
  image: isDocker ? { kind: "docker", reference, files: [] } : { kind: "host", files: [] },
  workdir: "/app",
  env: {},
  network: "none",
  diskBytes: 1 << 20,
};
let count = 0;

async function work(): Promise<never> {
  while (true) {
    const lease = () => ({
      id: `busy/${process.pid}/${count++}`,
      generation: 1,
      deadlineMs: Date.now() + 600_000,
    });
    const sandbox = await provider.create(spec, lease());
    await sandbox.exec(`echo x > f; sleep ${mark} & setsid sleep ${mark} &`, { timeoutMs: 60_000 });
    const terminal = await sandbox.terminal({ columns: 80, rows: 24 });
    await terminal.send(`sleep ${mark}\n`);
    await sandbox.killAgents();
    const next = await sandbox.successor(lease(), { without: [] });
    await sandbox[Symbol.asyncDispose]();
    if (!("refused" in next)) {
      await next.exec("cat f", { timeoutMs: 60_000 });
      await next[Symbol.asyncDispose]();
    }
  }
}

process.stdout.write("ready\n");
await Promise.all([work(), work(), work()]);
