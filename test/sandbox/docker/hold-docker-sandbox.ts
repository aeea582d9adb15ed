// A driver for tests to kill: makes one sandbox in a container, starts something in it, says so, and waits.
// Arguments: folder for the provider, image, lease id, its life in ms, services beside it as JSON.
import { createDockerProvider } from "../../../src/sandbox/docker/provider.ts";

const [, , runParent = "", reference = "", id = "held", lifeMs, services] = process.argv;
const provider = await createDockerProvider({ runParent });
const sandbox = await provider.create(
  {
    image: { kind: "docker", reference, files: [] },
    workdir: "/app",
    env: { COLOUR: "red" },
    network: "none",
    diskBytes: 1 << 20,
    ...(services !== undefined && { services: JSON.parse(services) }),
  },
  { id, generation: 1, deadlineMs: Date.now() + Number(lifeMs) },
);
await sandbox.exec("echo kept > f; sleep 900 &", { timeoutMs: 60_000, requestId: "turn-1" });
process.stdout.write("ready\n");
setInterval(() => undefined, 60_000);
