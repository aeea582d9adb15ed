// What an operation is asked with and answered by.
import type { Answer, Operation } from "./protocol.ts";

export interface Answered<Op extends Operation["op"] = Operation["op"]> {
  readonly value: Answer<Op>;
  readonly body?: Uint8Array;
}

export type Asked<Op extends Operation["op"]> = Extract<Operation, { op: Op }>;
