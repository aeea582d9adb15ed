// Driver and daemon prove to each other that they know the token, without saying it. A fresh daemon has none: it takes the
// one that its first driver grants, before anything else runs in the sandbox.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { FrameStream } from "./frame-stream.ts";
import { PROTOCOL_VERSION } from "./protocol.ts";

const Hex = z.string().regex(/^[0-9a-f]{64}$/);

const DaemonHello = z.strictObject({
  kind: z.literal("hello"),
  version: z.literal(PROTOCOL_VERSION),
  nonce: Hex,
  isFresh: z.boolean(),
});
const DriverHello = z.union([
  z.strictObject({ kind: z.literal("hello"), nonce: Hex, proof: Hex }),
  z.strictObject({ kind: z.literal("grant"), nonce: Hex, token: Hex }),
]);
const Welcome = z.strictObject({ kind: z.literal("welcome"), proof: Hex });

/** 32 random bytes as hexadecimal digits. */
export function makeToken(): string {
  return randomBytes(32).toString("hex");
}

/** @param token none for a fresh daemon. @returns the token now, or undefined when the driver does not know it */
export async function greetDriver(
  stream: FrameStream,
  token: string | undefined,
): Promise<string | undefined> {
  const nonce = makeToken();
  const hello: z.infer<typeof DaemonHello> = {
    ...{ kind: "hello", version: PROTOCOL_VERSION, nonce },
    isFresh: token === undefined,
  };
  stream.send(hello);
  const answer = DriverHello.safeParse((await stream.next())?.header).data;
  if (answer === undefined) return undefined;
  if (answer.kind === "grant" && token !== undefined) return undefined;
  const known = answer.kind === "grant" ? answer.token : token;
  if (known === undefined) return undefined;
  const nonces = `${nonce}:${answer.nonce}`;
  if (answer.kind === "hello" && !isEqual(answer.proof, proofOf(known, "driver", nonces))) return undefined;
  stream.send({ kind: "welcome", proof: proofOf(known, "daemon", nonces) } satisfies z.infer<typeof Welcome>);
  return known;
}

export type Greeted = "welcome" | "stranger";

/**
 * @param isGrant the token is given to the daemon, which must be fresh
 * @returns `stranger` for whoever is not the daemon that knows the token
 */
export async function greetDaemon(
  stream: FrameStream,
  token: string,
  { isGrant }: { readonly isGrant: boolean },
): Promise<Greeted> {
  const hello = DaemonHello.safeParse((await stream.next())?.header).data;
  if (hello === undefined || hello.isFresh !== isGrant) return "stranger";
  const nonce = makeToken();
  const nonces = `${hello.nonce}:${nonce}`;
  const answer: z.infer<typeof DriverHello> = isGrant
    ? { kind: "grant", nonce, token }
    : { kind: "hello", nonce, proof: proofOf(token, "driver", nonces) };
  stream.send(answer);
  const welcome = Welcome.safeParse((await stream.next())?.header).data;
  if (welcome === undefined || !isEqual(welcome.proof, proofOf(token, "daemon", nonces))) return "stranger";
  return "welcome";
}

function proofOf(token: string, role: "driver" | "daemon", nonces: string): string {
  return createHmac("sha256", Buffer.from(token, "hex")).update(`${role}:${nonces}`).digest("hex");
}

/** In the same time wherever they differ. */
function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
