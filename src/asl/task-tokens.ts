// Task tokens that are out: who has one ends the task, or shows that it is still at work.
import { InputError } from "../failure/errors.ts";
import type { Payload } from "./json-value.ts";
import type { StateError } from "./state-error.ts";

export interface TokenHolder {
  succeed(output: Payload): void;
  fail(error: StateError): void;
  beat(): void;
}

export class TaskTokens {
  readonly #holders = new Map<string, TokenHolder>();

  open(token: string, holder: TokenHolder): void {
    this.#holders.set(token, holder);
  }

  close(token: string): void {
    this.#holders.delete(token);
  }

  /** @throws InputError when no task waits for it: it ended, timed out, or never was */
  get(token: string): TokenHolder {
    const holder = this.#holders.get(token);
    if (holder === undefined)
      throw new InputError({
        what: "no task waits for this token",
        where: token.slice(0, 16),
        expected: "expected the token of a task that has neither ended nor timed out",
      });
    return holder;
  }
}
