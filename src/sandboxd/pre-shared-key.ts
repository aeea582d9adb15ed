// TLS without certificates: driver and daemon derive its key from the token that both know (RFC 5489, ECDHE_PSK).
import { createHmac } from "node:crypto";
import type { TlsOptions } from "node:tls";

const IDENTITY = "t1";
/** With a fresh key per connection, so that a token that leaks later opens no recorded one. */
const CIPHERS = "ECDHE-PSK-CHACHA20-POLY1305";

export function serverKeyOptions(token: string): TlsOptions {
  const key = keyOf(token);
  return { ...COMMON, pskCallback: (_socket, identity) => (identity === IDENTITY ? key : null) };
}

export function clientKeyOptions(token: string) {
  const key = keyOf(token);
  return {
    ...COMMON,
    pskCallback: () => ({ psk: key, identity: IDENTITY }),
    checkServerIdentity: () => undefined, // there is no certificate: only who knows the key gets this far
  };
}

/** Pre-shared keys by callback are those of TLS 1.2 (Node's documentation of `tls`, "Pre-shared keys"). */
const COMMON = { ciphers: CIPHERS, minVersion: "TLSv1.2", maxVersion: "TLSv1.2" } as const;

function keyOf(token: string): Buffer {
  return createHmac("sha256", Buffer.from(token, "hex")).update("t1 sandbox tls").digest();
}
