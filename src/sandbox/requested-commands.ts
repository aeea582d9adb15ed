// Commands that were given an id by whoever asked for them: asked for again, they are not run again.
import { InvariantError } from "../failure/errors.ts";
import type { ExecResult } from "./sandbox.ts";

export class RequestedCommands {
  readonly #commands = new Map<string, { readonly command: string; readonly result: Promise<ExecResult> }>();

  /**
   * The first result of an id, also of a command that still runs; without an id every command is run.
   *
   * @throws InvariantError for an id that belongs to another command
   */
  async run(
    requestId: string | undefined,
    command: string,
    start: () => Promise<ExecResult>,
  ): Promise<ExecResult> {
    if (requestId === undefined) return start();
    const earlier = this.#commands.get(requestId);
    if (earlier === undefined) {
      const result = start();
      this.#commands.set(requestId, { command, result });
      return result;
    }
    if (earlier.command !== command) {
      const values = { requestId, command, first: earlier.command };
      throw new InvariantError("a request id belongs to one command", values);
    }
    return earlier.result;
  }

  forget(): void {
    this.#commands.clear();
  }
}
