// The sandbox daemon. It is started by its own Node and needs nothing of the image it runs in. One of:
//   sandboxd.ts connect PATH        calls its driver at a unix socket, again and again when the connection is cut
//   sandboxd.ts listen PATH         awaits drivers at a unix socket
//   sandboxd.ts stdio               has one driver, at its standard streams
//   sandboxd.ts tls HOST:PORT       awaits drivers who know the token in T1_SANDBOX_TOKEN (64 hexadecimal digits)
// With "apart" before it, the link-local network is closed first to it and to all that it starts.
import { stat } from "node:fs/promises";
import { createServer, Socket } from "node:net";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer as createTlsServer } from "node:tls";
import { Daemon } from "./daemon.ts";
import { adoptOrphans, hideFromOthers } from "./kernel.ts";
import { closeLinkLocal } from "./link-local.ts";
import { serverKeyOptions } from "./pre-shared-key.ts";

const FIRST_RETRY_MS = 10;
const LAST_RETRY_MS = 250;

async function main([first, ...words]: readonly string[]): Promise<void> {
  if (first === "apart") {
    closeLinkLocal();
    return serve(words);
  }
  return serve([first ?? "", ...words]);
}

async function serve([mode, place = ""]: readonly string[]): Promise<void> {
  // What commands do to each other by name or at large must not end the daemon. As process 1 of its namespace nothing
  // inside can; and a signal that Node knows would be as good as a command to it.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXFSZ", "SIGUSR2"] as const)
    process.on(signal, () => undefined);
  hideFromOthers();
  adoptOrphans();
  // Starts the threads that work on files now: later a fork bomb may have left no number for them.
  await stat("/");
  const end = (): never => process.exit(0);
  switch (mode) {
    case "connect":
      return callDriver(new Daemon(undefined, end), place);
    case "listen": {
      const daemon = new Daemon(undefined, end);
      createServer(socket => void daemon.serve(socket)).listen(place);
      return;
    }
    case "stdio":
      await new Daemon(undefined, end).serve(
        Duplex.from({ readable: process.stdin, writable: process.stdout }),
      );
      return end();
    case "tls": {
      const token = process.env.T1_SANDBOX_TOKEN ?? "";
      if (!/^[0-9a-f]{64}$/.test(token)) throw new Error("T1_SANDBOX_TOKEN is not 64 hexadecimal digits");
      const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(place) ?? [];
      const daemon = new Daemon(token, end);
      const server = createTlsServer(serverKeyOptions(token), socket => void daemon.serve(socket));
      server.on("tlsClientError", () => undefined); // whoever does not know the key
      server.listen(Number(port), host, () =>
        process.stderr.write(`listening at ${JSON.stringify(server.address())}\n`),
      );
      return;
    }
    default:
      throw new Error(`usage: sandboxd [apart] connect|listen|stdio|tls PLACE, got ${mode}`);
  }
}

async function callDriver(daemon: Daemon, path: string): Promise<void> {
  for (let waitMs = FIRST_RETRY_MS; ; waitMs = Math.min(2 * waitMs, LAST_RETRY_MS)) {
    const socket = new Socket();
    const isConnected = await new Promise<boolean>(resolve => {
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      socket.connect(path);
    });
    if (isConnected) {
      waitMs = FIRST_RETRY_MS;
      await daemon.serve(socket);
    }
    socket.destroy();
    await sleep(waitMs);
  }
}

await main(process.argv.slice(2));
