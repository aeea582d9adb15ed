// Where in an answer's body the kept bytes of a stream lie.
import type { CapturedOutput } from "../sandbox/sandbox.ts";
import type { CapturedSizes } from "./protocol.ts";

export function sizesOf({ head, tail, omittedBytes }: CapturedOutput): CapturedSizes {
  return { headBytes: head.length, tailBytes: tail.length, omittedBytes };
}

/** @throws Failure SandboxBroken for more than was asked for, or other bytes than are announced */
export function capturedOf(
  client: { distrust(detail: string): Error },
  { headBytes, tailBytes, omittedBytes }: CapturedSizes,
  bytes: Uint8Array,
  limitBytes: number,
): CapturedOutput {
  if (headBytes + tailBytes !== bytes.length || bytes.length > limitBytes)
    throw client.distrust("sends other output than it announces, or more than was asked for");
  return {
    head: new Uint8Array(bytes.subarray(0, headBytes)),
    tail: new Uint8Array(bytes.subarray(headBytes)),
    omittedBytes,
  };
}
