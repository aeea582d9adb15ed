// Where in an answer's body the kept bytes of a stream lie.
import type { CapturedOutput } from "../sandbox.ts";
import type { CapturedSizes } from "./protocol.ts";

export function sizesOf({ head, tail, omittedBytes }: CapturedOutput): CapturedSizes {
  return { headBytes: head.length, tailBytes: tail.length, omittedBytes };
}
