// Our own sandboxes.
import { createBubblewrapProvider } from "../../src/sandbox/bubblewrap/provider.ts";
import { createDockerProvider } from "../../src/sandbox/docker/provider.ts";
import type { SandboxImage, SandboxProvider } from "../../src/sandbox/sandbox.ts";
import type { Box, Contender } from "./contender.ts";

export function ownBubblewrap(): Contender {
  const image = { kind: "host", files: [] } as const;
  return contender("t1 bubblewrap", "bubblewrap", createBubblewrapProvider(), image);
}

export async function ownDocker(reference: string): Promise<Contender> {
  const image = { kind: "docker", reference, files: [] } as const;
  // Providers limit the rate of creation so that a host can do other work; in the bench that limit would hide all else.
  const creation = { perSecond: 1_000, burst: 1_000 };
  return contender("t1 docker", "docker", await createDockerProvider({ creation }), image);
}

function contender(
  name: string,
  kind: Contender["kind"],
  provider: SandboxProvider,
  image: SandboxImage,
): Contender {
  let count = 0;
  return {
    name,
    kind,
    async create(): Promise<Box> {
      const sandbox = await provider.create(
        { image, workdir: "/app", env: {}, network: "none", diskBytes: 64 << 20 },
        { id: `bench/${process.pid}/${count++}`, generation: 1, deadlineMs: Date.now() + 3_600_000 },
      );
      let terminal: ReturnType<typeof sandbox.terminal> | undefined;
      return {
        async command() {
          await sandbox.exec("true", { timeoutMs: 600_000 });
        },
        async turn() {
          terminal ??= sandbox.terminal({ columns: 160, rows: 40 });
          const opened = await terminal;
          await opened.send(":\n");
          await opened.readNew();
          await opened.screen();
        },
        stop: async () => sandbox[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: async () => provider[Symbol.asyncDispose](),
  };
}
