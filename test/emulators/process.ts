// An emulator as a child process on loopback, which is gone after the tests.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export const ROOT = join(import.meta.dirname, "../..");
const START_MS = 120_000;

export interface Emulator {
  /** `http://127.0.0.1:…` */
  readonly endpoint: string;
  /** Environment of programs that must talk only to the emulator. */
  readonly environment: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

/** @param health URL that answers when it is up @returns what ends it */
export async function runUntilHealthy(
  program: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  health: string,
): Promise<() => Promise<void>> {
  const child = spawn(program, words, { env, stdio: ["ignore", "pipe", "pipe"] });
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", chunk => log.push(String(chunk)));
  // A test runner that is killed must not leave it behind.
  process.once("exit", () => child.kill("SIGKILL"));
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  for (const deadline = Date.now() + START_MS; ; await sleep(100)) {
    const isUp = await fetch(health).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return stop;
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`${words.join(" ")} does not start: ${log.join("").slice(-4_000)}`);
    }
  }
}

/** Environment for any emulator: fake credentials, and no way to a real account. */
export function environmentFor(endpoint: string): NodeJS.ProcessEnv {
  const { AWS_PROFILE: _, ...inherited } = process.env;
  return {
    ...inherited,
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: "test",
    AWS_SECRET_ACCESS_KEY: "test",
    AWS_REGION: "us-east-1",
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_CONFIG_FILE: "/dev/null",
    AWS_SHARED_CREDENTIALS_FILE: "/dev/null",
    CDK_DISABLE_CLI_TELEMETRY: "1",
  };
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        typeof address === "object" && address !== null
          ? resolve(address.port)
          : reject(new Error("no port")),
      );
    });
  });
}

export function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
