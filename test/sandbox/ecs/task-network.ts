// The way from drivers to the daemons of one task, which can be cut: what comes to its address is handed on to the address
// at which its containers really listen.
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class TaskNetwork {
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();
  #isClosed = false;
  /** Whoever calls is hung up on. */
  isBlocked = false;

  /** @param from address of the task @param to address of its containers */
  async open(port: number, from: string, to: string): Promise<void> {
    const server = createServer(caller => {
      if (this.isBlocked) return void caller.destroy();
      const callee = connect(port, to);
      for (const [one, other] of [
        [caller, callee],
        [callee, caller],
      ] as const) {
        this.#sockets.add(one);
        one.setNoDelay(true);
        one
          .on("error", () => undefined)
          .on("close", () => {
            this.#sockets.delete(one);
            other.destroy();
          });
        one.pipe(other);
      }
    });
    this.#servers.push(server);
    server.listen(port, from);
    await once(server, "listening");
    if (this.#isClosed) this.close();
  }

  /** Ends all connections; new ones can be made. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.#isClosed = true;
    for (const server of this.#servers.splice(0)) server.close();
    this.cut();
  }
}
