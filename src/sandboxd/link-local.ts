// Closes the link-local network, where a cloud's machine tells whoever asks what it may do (169.254.169.254), and the
// addresses of IPv6 that stand for it: by a container's bridge they are reached as everything is. The namespace of the
// sandbox's network has the routes, so nothing changes outside, and nobody inside has the right to take them away.
import { closeSync } from "node:fs";
import koffi from "koffi";
import { callPrctl, check } from "./kernel.ts";

const libc = koffi.load("libc.so.6");
const callSocket = libc.func("int socket(int domain, int type, int protocol)");
const callIoctl = libc.func("int ioctl(int fd, ulong request, void *argument)");
const callCapget = libc.func("int capget(void *header, void *data)");
const callCapset = libc.func("int capset(void *header, void *data)");

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
// linux/sockios.h
const SIOCADDRT = 0x890b;
// linux/route.h: `struct rtentry` on machines of 64 bits
const ROUTE_BYTES = 120;
const DESTINATION = 8;
const NETMASK = 40;
const FLAGS = 56;
// linux/ipv6_route.h: `struct in6_rtmsg`
const ROUTE_6_BYTES = 80;
const DESTINATION_6 = 0;
const PREFIX_6 = 52;
const METRIC_6 = 56;
const FLAGS_6 = 72;
const RTF_UP = 0x1;
const RTF_REJECT = 0x200;
// asm-generic/errno.h
const EAFNOSUPPORT = 97;
// linux/capability.h
const CAPABILITY_VERSION_3 = 0x20080522;
const CAP_SETPCAP = 8;
const CAP_NET_ADMIN = 12;
// linux/prctl.h
const PR_CAPBSET_DROP = 24;

/**
 * Of IPv6: fd00:ec2::/32, Amazon's link-local services, and fd20:ce::254, Google's metadata server.
 * Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html and
 * https://cloud.google.com/compute/docs/metadata/querying-metadata
 */
const CLOSED_6 = [
  { address: "fd000ec2000000000000000000000000", prefix: 32 },
  { address: "fd2000ce000000000000000000000254", prefix: 128 },
] as const;

/** Before anything is started; of the thread that starts commands. */
export function closeLinkLocal(): void {
  rejectNetwork([169, 254, 0, 0], [255, 255, 0, 0]);
  for (const { address, prefix } of CLOSED_6) rejectNetwork6(Buffer.from(address, "hex"), prefix);
  for (const capability of [CAP_NET_ADMIN, CAP_SETPCAP])
    check(callPrctl(PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl");
  giveUp((1 << CAP_NET_ADMIN) | (1 << CAP_SETPCAP));
}

function rejectNetwork(address: readonly number[], mask: readonly number[]): void {
  const route = Buffer.alloc(ROUTE_BYTES);
  for (const [at, bytes] of [
    [DESTINATION, address],
    [NETMASK, mask],
  ] as const) {
    route.writeUInt16LE(AF_INET, at);
    route.set(bytes, at + 4); // after family and port
  }
  route.writeUInt16LE(RTF_UP | RTF_REJECT, FLAGS);
  addRoute(check(callSocket(AF_INET, SOCK_DGRAM, 0), "socket"), route);
}

function rejectNetwork6(address: Buffer, prefix: number): void {
  const route = Buffer.alloc(ROUTE_6_BYTES);
  route.set(address, DESTINATION_6);
  route.writeUInt16LE(prefix, PREFIX_6);
  route.writeUInt32LE(1, METRIC_6);
  route.writeUInt32LE(RTF_UP | RTF_REJECT, FLAGS_6);
  const socket = callSocket(AF_INET6, SOCK_DGRAM, 0);
  if (socket < 0 && koffi.errno() === EAFNOSUPPORT) return; // the machine has no IPv6
  addRoute(check(socket, "socket"), route);
}

function addRoute(socket: number, route: Buffer): void {
  try {
    check(callIoctl(socket, SIOCADDRT, route), "ioctl");
  } finally {
    closeSync(socket);
  }
}

/** @param mask of the first 32 capabilities */
function giveUp(mask: number): void {
  const header = new Uint32Array([CAPABILITY_VERSION_3, 0]);
  const sets = new Uint32Array(6); // effective, permitted, inheritable; twice
  check(callCapget(header, sets), "capget");
  for (const at of [0, 1, 2]) sets[at] = (sets[at] ?? 0) & ~mask;
  check(callCapset(header, sets), "capset");
}
