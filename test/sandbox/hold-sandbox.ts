// A driver for tests to kill: makes one sandbox, runs a command in it, says so, and waits until its input ends.
// Arguments: folder for the provider, lease id, its life in ms, command.
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";

const [, , runParent, id = "held", lifeMs, command = "true"] = process.argv;
const provider = createBubblewrapProvider(runParent);
const sandbox = await provider.create(
  { image: { kind: "host", files: [] }, workdir: "/app", env: {}, network: "none", diskBytes: 1 << 20 },
  { id, generation: 1, deadlineMs: Date.now() + Number(lifeMs) },
);
await sandbox.exec(command, { timeoutMs: 10_000 });
process.stdout.write("ready\n");
process.stdin.resume().on("end", () => process.exit());
