// Closes the link-local network, where a cloud's machine tells whoever asks what it may do (169.254.169.254): by a
// container's bridge it is reached as everything is. The namespace of the sandbox's network has the route, so nothing
// changes outside, and nobody inside has the right to take it away.
import { closeSync } from "node:fs";
import koffi from "koffi";
import { callPrctl, check } from "./kernel.ts";

const libc = koffi.load("libc.so.6");
const callSocket = libc.func("int socket(int domain, int type, int protocol)");
const callIoctl = libc.func("int ioctl(int fd, ulong request, void *argument)");
const callCapget = libc.func("int capget(void *header, void *data)");
const callCapset = libc.func("int capset(void *header, void *data)");

const AF_INET = 2;
const SOCK_DGRAM = 2;
// linux/sockios.h
const SIOCADDRT = 0x890b;
// linux/route.h: `struct rtentry` on machines of 64 bits
const ROUTE_BYTES = 120;
const DESTINATION = 8;
const NETMASK = 40;
const FLAGS = 56;
const RTF_UP = 0x1;
const RTF_REJECT = 0x200;
// linux/capability.h
const CAPABILITY_VERSION_3 = 0x20080522;
const CAP_SETPCAP = 8;
const CAP_NET_ADMIN = 12;
// linux/prctl.h
const PR_CAPBSET_DROP = 24;

/** Before anything is started; of the thread that starts commands. */
export function closeLinkLocal(): void {
  rejectNetwork([169, 254, 0, 0], [255, 255, 0, 0]);
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
  const socket = check(callSocket(AF_INET, SOCK_DGRAM, 0), "socket");
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
