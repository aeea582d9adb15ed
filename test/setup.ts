// Tests talk to loopback only. A connection to any other host fails at once, with the host in the message.
import net from "node:net";

process.env.AWS_ACCESS_KEY_ID = "test";
process.env.AWS_SECRET_ACCESS_KEY = "test";
process.env.AWS_REGION = "us-east-1";
// Far from UTC, so that a time that is written without its zone shows.
process.env.TZ = "Asia/Tokyo";

/** All of 127.0.0.0/8 stays on the host. */
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;
const connect = net.Socket.prototype.connect;

net.Socket.prototype.connect = function guarded(this: net.Socket, ...args: Parameters<typeof connect>) {
  const first: unknown = Array.isArray(args[0]) ? args[0][0] : args[0];
  const host = typeof first === "object" && first !== null && "host" in first ? first.host : undefined;
  if (typeof host === "string" && !LOOPBACK.test(host))
    throw new Error(`tests may only talk to loopback, not to ${host}`);
  return connect.apply(this, args);
} as typeof connect;
