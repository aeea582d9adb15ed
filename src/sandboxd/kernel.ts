// Calls of the Linux kernel that Node does not make itself.
import koffi from "koffi";

const libc = koffi.load("libc.so.6");
const callPipe = libc.func("int pipe2(int *fds, int flags)");
const callFcntl = libc.func("int fcntl(int fd, int command, int argument)");
export const callPrctl = libc.func("int prctl(int option, ulong a, ulong b, ulong c, ulong d)");
const callSetrlimit = libc.func("int setrlimit(int resource, void *limits)");
const callWaitid = libc.func("int waitid(int type, uint id, void *info, int options)");
const callWaitpid = libc.func("int waitpid(int pid, void *status, int options)");

// asm-generic/fcntl.h
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const F_SETFD = 2;
const F_SETFL = 4;
const FD_CLOEXEC = 1;
// linux/prctl.h
const PR_SET_DUMPABLE = 4;
const PR_SET_CHILD_SUBREAPER = 36;
// asm-generic/resource.h
const RLIMIT_FSIZE = 1;
// linux/wait.h
const P_ALL = 0;
const WNOHANG = 1;
const WEXITED = 4;
const WNOWAIT = 0x0100_0000;
/** Of `siginfo_t` and of its field `si_pid` on machines of 64 bits (asm-generic/siginfo.h). */
const SIGINFO_BYTES = 128;
const SIGINFO_PID = 16;

export interface Pipe {
  readonly read: number;
  readonly write: number;
}

/** A pipe that no started program inherits by accident. Unlike Node's socket pairs it can be opened again by name. */
export function openPipe(): Pipe {
  const fds = new Int32Array(2);
  check(callPipe(fds, O_CLOEXEC), "pipe2");
  const [read = -1, write = -1] = fds;
  return { read, write };
}

/** Our end only: the other one keeps waiting, as programs expect it. */
export function doNotBlock(fd: number): void {
  check(callFcntl(fd, F_SETFL, O_NONBLOCK), "fcntl");
}

export function closeOnExec(fd: number): void {
  check(callFcntl(fd, F_SETFD, FD_CLOEXEC), "fcntl");
}

/**
 * Nobody but the machine's root may look into this process or change its memory: root of a container without
 * CAP_SYS_PTRACE, as which agents run, is refused (ptrace(2), "Ptrace access mode checking", 4).
 */
export function hideFromOthers(): void {
  check(callPrctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl");
}

/** Limits every file that this process and its children write; root without CAP_SYS_RESOURCE cannot raise it again. */
export function limitFileSize(limitBytes: number): void {
  const limits = new BigUint64Array([BigInt(limitBytes), BigInt(limitBytes)]); // soft and hard
  check(callSetrlimit(RLIMIT_FSIZE, limits), "setrlimit");
}

/**
 * Orphans below this process become its children, as they would of process 1. Where this cannot be had they go there: a
 * processor that is emulated by qemu-user does not have it.
 */
export function adoptOrphans(): void {
  callPrctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/** @returns a dead child that nobody has waited for yet */
export function peekDeadChild(): number | undefined {
  const info = Buffer.alloc(SIGINFO_BYTES);
  if (callWaitid(P_ALL, 0, info, WEXITED | WNOHANG | WNOWAIT) < 0) return undefined; // it has no child
  const pid = info.readInt32LE(SIGINFO_PID);
  return pid === 0 ? undefined : pid;
}

export function reap(pid: number): void {
  callWaitpid(pid, null, WNOHANG);
}

/** @returns the result of a call that went well */
export function check(result: number, call: string): number {
  if (result < 0) throw new Error(`${call} failed: errno ${koffi.errno()}`);
  return result;
}
